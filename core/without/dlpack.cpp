// What stands for core/dlpack.cpp where DLPack's header is absent.
#include <braid/core/dlpack.h>
#include <braid/core/error.h>

namespace braid {

void DeleteDLPack::operator()(DLManagedTensor*) const {}
DLPack to_dlpack(const Tensor&) { throw MissingLibrary("to_dlpack", "DLPack"); }
Tensor from_dlpack(DLPack) { throw MissingLibrary("from_dlpack", "DLPack"); }

}  // namespace braid
