#pragma once
#include <braid/core/product.h>

namespace braid {

/// Computes a product on the calling thread. What bf16_products() names multiplies bf16 with alpha = 1, more than 8
/// rows, and n and k of at least 16; its bits depend on k alone. On x86-64, oneDNN multiplies f32, and other bf16,
/// widened. Braid's packed product multiplies f64, and the rest too in a BatchInvariant scope, if set_instruction_set
/// excludes oneDNN, and for a transposed a of over 128 rows on AVX2 and up to 8 rows of bf16 or times a wide b^T.
template <class T, class C = T>
void gemm_serial(const Product<T, C>& product);

/// Computes a product on all threads. One thread sums each element of c over all of k, and the tiles of c depend on the
/// shape alone where they matter, so that the bits do not depend on the number of threads.
/// The bf16 terms of f32 are multiplied as bf16.
template <class T, class C = T>
void gemm(const Product<T, C>& product);

/// What multiplies bf16 under the instruction set in use: "AMX", "AVX512_BF16", or "f32", which is as slow as f32
/// products. It is "f32" too on Intel processors without AMX, whose AVX512_BF16 is slower than f32.
const char* bf16_products();

}  // namespace braid
