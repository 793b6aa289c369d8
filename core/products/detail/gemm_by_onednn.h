#pragma once
#include <braid/core/product.h>

namespace braid::detail {

/// Whether this build has oneDNN, which multiplies on x86-64 alone.
bool has_onednn();

/// Computes a product by oneDNN on the calling thread.
void multiply_by_onednn(const Product<float>& product);
void multiply_by_onednn(const Product<bfloat16, float>& product);

}  // namespace braid::detail
