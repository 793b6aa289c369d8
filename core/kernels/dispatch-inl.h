// Chooses among the copies of a kernel file, one for each SIMD target. Included after hwy/foreach_target.h.
// clang-format off
#include <hwy/highway.h>

/// Ends a kernel file: defines `declaration`, a function without arguments, in namespace `scope`. It returns what
/// `tables()` of the file returns when compiled for the best instruction set of this processor.
#undef BRAID_DISPATCH
#if HWY_ONCE
#define BRAID_DISPATCH(scope, declaration)                       \
  namespace scope {                                              \
  HWY_EXPORT(tables);                                            \
  declaration { return HWY_DYNAMIC_DISPATCH(tables)(); }         \
  }
#else
#define BRAID_DISPATCH(scope, declaration)
#endif
