// What stands for core/dlpack.cpp where DLPack's header is absent.
#include <braid/core/detail/missing_library.h>
#include <braid/core/dlpack.h>

namespace braid {

void DeleteDLPack::operator()(DLManagedTensor*) const {}
DLPack to_dlpack(const Tensor&) { detail::throw_missing("to_dlpack", "DLPack"); }
Tensor from_dlpack(DLPack) { detail::throw_missing("from_dlpack", "DLPack"); }

}  // namespace braid
