#pragma once
#include <braid/core/product.h>

namespace braid::detail {

/// Whether this build has oneDNN and it uses the instruction set in use: it keeps that of its first product.
bool may_use_onednn();

/// Computes a product by oneDNN on the calling thread.
void multiply_by_onednn(const Product<float>& product);

}  // namespace braid::detail
