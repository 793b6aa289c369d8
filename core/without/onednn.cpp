// What stands for core/products/detail/gemm_by_onednn.cpp where oneDNN is absent.
#include <braid/core/error.h>
#include <braid/core/products/detail/gemm_by_onednn.h>

namespace braid::detail {

bool may_use_onednn() { return false; }
void multiply_by_onednn(const Product<float>&) { throw MissingLibrary("gemm", "oneDNN"); }

}  // namespace braid::detail
