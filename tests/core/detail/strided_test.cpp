#include <braid/core/detail/strided.h>

#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <braid/core/detail/indexing.h>
#include <braid/core/random.h>
#include <braid/core/tensor.h>
#include <tests/support.h>
#include <tests/target_guard.h>

namespace braid::strided_test {
namespace {

/// Views of every kind, with runs that merge, steps, stride 0 and axes of size 1.
std::vector<Tensor> views(DType dtype) {
  const Tensor t = arange(120, dtype).reshape({2, 3, 4, 5});
  return {t,
          t.permute({3, 1, 0, 2}),
          t.slice(1, 1, 3).slice(3, 0, 4),
          t.select(3, 2),
          t.select(3, 2).transpose(),
          t.reshape({2, 3, 10, 2}).select(3, 1).transpose(),
          t.slice(2, 1, 2).broadcast_to({2, 3, 6, 5}),
          t.select(0, 0).expand_dims(1).broadcast_to({3, 7, 4, 5}).transpose(0, 3),
          scalar(3, dtype).broadcast_to({4, 4}),
          scalar(3, dtype)};
}

TEST(Strided, GathersAnyRangeOfAView) {
  for (const Tensor& view : views(DType::f64)) {
    std::vector<double> expected;
    for (const auto& index : indices(view.shape())) expected.push_back(at(view, index));
    const std::int64_t n = view.numel();
    for (const std::int64_t begin : {std::int64_t{0}, n / 3, n / 2, n})
      for (const std::int64_t end : {begin, (begin + n) / 2, n}) {
        std::vector<double> out(static_cast<std::size_t>(end - begin));
        detail::gather_strided(view.bytes(), view.strides(), view.shape(), sizeof(double), begin, end,
                               reinterpret_cast<std::byte*>(out.data()));
        EXPECT_EQ(out, std::vector<double>(expected.begin() + begin, expected.begin() + end))
            << to_string(view.shape());
      }
  }
}

TEST(Strided, CopiesFourByteElementsToo) {
  for (const DType dtype : {DType::f32, DType::i32})
    for (const Tensor& view : views(dtype)) {
      std::vector<double> expected;
      for (const auto& index : indices(view.shape())) expected.push_back(at(view, index));
      EXPECT_EQ(view.to_vector<double>(), expected);
    }
}

TEST(Strided, CopiesTransposedViewsOfAnySize) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t rows : {1, 15, 16, 33})
      for (const std::int64_t columns : {2, 16, 40}) {
        const Tensor t = arange(3 * rows * columns, dtype);
        for (const Tensor& view :
             {t.reshape({rows, columns, 3}).permute({2, 1, 0}), t.reshape({3, rows, columns}).permute({0, 2, 1}),
              t.reshape({rows, 3, columns}).permute({2, 1, 0}), t.reshape({rows, 3, columns}).permute({1, 2, 0})}) {
          std::vector<double> expected;
          for (const auto& index : indices(view.shape())) expected.push_back(at(view, index));
          EXPECT_EQ(view.to_vector<double>(), expected) << to_string(view.shape());
        }
      }
}

TEST(Strided, CopiesMoreThanABlockTheSameOnAnyNumberOfThreads) {
  const Tensor t = arange(3 * 129 * 131).reshape({3, 129, 131}).transpose();
  Tensor one;
  {
    const WithThreads with_threads(1);
    one = t.clone();
  }
  EXPECT_EQ(one.at({2, 130, 128}), t.at({2, 130, 128}));
  for (const int threads : {2, 3}) {
    const WithThreads with_threads(threads);
    EXPECT_TRUE(identical(t.clone(), one));
  }
}

TEST(Strided, AddsIntoViewsOfBF16AsItsSumsRoundOnEverySimdTarget) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const TargetGuard guard(target);
    for (const std::int64_t width : {1, 7, 16, 33, 300})
      for (const std::int64_t step : {1, 2}) {
        Rng rng(static_cast<std::uint64_t>(width));
        Tensor sums = randn({3, step * width + 5}, rng).to(DType::bf16);
        Tensor terms = randn({3, width}, rng).to(DType::bf16);
        // Overflow, a half-way case, a cancelled and a negative zero, and a result below 2^-126.
        const std::vector<std::pair<float, float>> special{
            {0x1.fep127F, 0x1p120F}, {1, 0x1p-8F}, {1, -1}, {-0.0F, -0.0F}, {0x1p-126F, -0x1.8p-127F}};
        for (std::size_t i = 0; i < special.size() && static_cast<std::int64_t>(i) < width; ++i) {
          const auto at = static_cast<std::int64_t>(i);
          sums.mutable_data<bfloat16>()[2 + step * at] = bfloat16(special[i].first);
          terms.mutable_data<bfloat16>()[at] = bfloat16(special[i].second);
        }
        Tensor expected = sums.clone(), got = sums.clone();
        for (std::int64_t row = 0; row < 3; ++row)
          for (std::int64_t i = 0; i < width; ++i) {
            bfloat16& sum = expected.mutable_data<bfloat16>()[row * sums.size(1) + 2 + step * i];
            sum = bfloat16(sum + terms.data<bfloat16>()[row * width + i]);
          }
        detail::add_to_view(
            got, [&](const Tensor& x) { return x.slice(1, 2, 2 + step * width, step); }, terms);
        EXPECT_TRUE(identical(got, expected)) << hwy::TargetName(target) << ", " << width << ", " << step;
      }
  }
}

TEST(Strided, SelectsFromManyRowsOfNothingAtOnce) {
  const Tensor x = zeros({std::int64_t{1} << 59, 1, 0});
  EXPECT_EQ(detail::index_select(x, 1, zeros({1}, DType::i32)).shape(), x.shape());
}

}  // namespace
}  // namespace braid::strided_test
