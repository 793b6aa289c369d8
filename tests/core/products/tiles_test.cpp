// Products of packed tiles of bf16, by whatever multiplies them on this processor, against sums in f64.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <braid/core/batch_invariant.h>
#include <braid/core/products/kernels/amx.h>
#include <braid/core/random.h>
#include <tests/support.h>

namespace braid::tiles_test {
namespace {

using namespace kernels::amx;

/// Packed rows of x [lines, depth] or, if `transposed`, of a tensor [depth, lines].
std::vector<bfloat16> packed(Side side, const Tensor& x, bool transposed) {
  const std::int64_t lines = x.size(transposed ? 1 : 0), depth = x.size(transposed ? 0 : 1);
  std::vector<bfloat16> to(static_cast<std::size_t>(packed_lines(lines, depth)));
  if (x.dtype() == DType::f32)
    pack_rounded({x.data<float>(), x.size(1), transposed}, lines, depth, to.data());
  else
    pack<bfloat16>(side, 1, {x.data<bfloat16>(), x.size(1), transposed}, lines, depth, to.data());
  return to;
}

TEST(Tiles, AreMultiplied) {
  const Multiply multiply = fast_multiply();
  if (multiply == nullptr) GTEST_SKIP() << "nothing multiplies tiles here";
  for (const std::int64_t m : {1, 7, 13, 32})
    for (const std::int64_t n : {1, 17, 33, 80})
      for (const std::int64_t k : {1, 31, 33, 70})
        for (const int variant : {0, 1, 2, 3}) {
          Rng rng(static_cast<std::uint64_t>(m + 100 * n + 10000 * k));
          const bool transposed = variant % 2 == 1, adds = variant > 1;
          const std::int64_t deeper = k + 32 * variant;  // b may be packed deeper than it is multiplied
          const Tensor a =
              randn(transposed ? Shape{k, m} : Shape{m, k}, rng).to(variant == 2 ? DType::bf16 : DType::f32);
          const Tensor b = randn(transposed ? Shape{deeper, n} : Shape{n, deeper}, rng).to(DType::bf16);
          const Tensor start = randn({m, n}, rng);
          Tensor c = start.clone();
          auto left = packed(Side::left, a, transposed), right = packed(Side::right, b, transposed);
          Tensor rounded = zeros({m, n + 3}, DType::bf16);
          PackedProduct product{.terms = 1,
                                .m = m,
                                .n = n,
                                .k = k,
                                .a = left.data(),
                                .b = right.data(),
                                .from = adds ? c.data<float>() : nullptr,
                                .from_stride = n,
                                .beta = 0.5F,
                                .c = {c.mutable_data<float>(), n},
                                .rounded = {rounded.mutable_data<bfloat16>(), n + 3},
                                .b_group = packed_size(1, deeper)};
          multiply(product);
          ASSERT_TRUE(identical(c, start));
          product.rounded.data = nullptr;
          multiply(product);
          ASSERT_TRUE(identical(rounded.slice(1, 0, n).contiguous(), c.to(DType::bf16)));
          ASSERT_TRUE(identical(rounded.slice(1, n, n + 3).contiguous(), zeros({m, 3}, DType::bf16)));
          const Tensor rows = transposed ? a.transpose() : a, columns = transposed ? b.transpose() : b;
          for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
              double sum = adds ? 0.5 * start.at({i, j}) : 0, size = std::abs(sum);
              for (std::int64_t p = 0; p < k; ++p) {
                const double term = double{bfloat16(static_cast<float>(rows.at({i, p})))} * columns.at({j, p});
                sum += term;
                size += std::abs(term);
              }
              ASSERT_NEAR(c.at({i, j}), sum, 1e-6 * size) << m << " x " << n << " x " << k << ", " << i << ", " << j;
            }
        }
}

TEST(Tiles, AreNotMultipliedInABatchInvariantScope) {
  const BatchInvariant scope;
  EXPECT_EQ(fast_multiply(), nullptr);
}

}  // namespace
}  // namespace braid::tiles_test
