// Chooses among the copies of a kernel file, one for each SIMD target. Included after hwy/foreach_target.h.
// clang-format off
#include <hwy/highway.h>

#include <braid/core/instruction_set.h>

/// What `tables()` of the file returns when compiled for the best target of instruction_set(). HWY_EXPORT(tables)
/// stands before it.
#undef BRAID_TABLES
#define BRAID_TABLES() (braid::detail::begin_dispatch(), HWY_DYNAMIC_DISPATCH(tables)())

/// Ends a kernel file: defines `declaration`, a function without arguments, in namespace `scope`. It returns
/// BRAID_TABLES().
#undef BRAID_DISPATCH
#if HWY_ONCE
#define BRAID_DISPATCH(scope, declaration)                       \
  namespace scope {                                              \
  HWY_EXPORT(tables);                                            \
  declaration { return BRAID_TABLES(); }                         \
  }
#else
#define BRAID_DISPATCH(scope, declaration)
#endif
