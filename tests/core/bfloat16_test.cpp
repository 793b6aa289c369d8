#include <braid/core/bfloat16.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <braid/core/format.h>
#include <braid/core/kernels/elements.h>
#include <braid/core/tensor.h>
#include <tests/support.h>
#include <tests/target_guard.h>

namespace braid::bfloat16_test {
namespace {

bfloat16 of_bits(std::uint32_t bits) {
  bfloat16 x;
  x.bits = static_cast<std::uint16_t>(bits);
  return x;
}

/// Every finite bfloat16 but the largest, its next neighbor away from zero, and what lies between.
template <class F>
void for_each_gap(F f) {
  for (std::uint32_t bits = 0; bits < 0x7f7f; ++bits)
    for (const std::uint32_t sign : {0U, 0x8000U}) f(of_bits(bits | sign), of_bits((bits + 1) | sign));
}

TEST(BFloat16, RoundsToNearestEven) {
  for_each_gap([](bfloat16 low, bfloat16 high) {
    const double a = low, b = high, middle = (a + b) / 2;
    const bfloat16 even = low.bits % 2 == 0 ? low : high;
    ASSERT_EQ(bfloat16(static_cast<float>(low)).bits, low.bits);
    ASSERT_EQ(bfloat16(middle).bits, even.bits);
    ASSERT_EQ(bfloat16(static_cast<float>(middle)).bits, even.bits);
    ASSERT_EQ(bfloat16(std::nextafter(static_cast<float>(middle), low)).bits, low.bits);
    ASSERT_EQ(bfloat16(std::nextafter(static_cast<float>(middle), high)).bits, high.bits);
    // A float has no such number: by way of one that rounds to nearest, both would end at the even side.
    ASSERT_EQ(bfloat16(std::nextafter(middle, a)).bits, low.bits);
    ASSERT_EQ(bfloat16(std::nextafter(middle, b)).bits, high.bits);
  });
}

TEST(BFloat16, KeepsWhatIsNoNumber) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(bfloat16(infinity).bits, 0x7f80);
  EXPECT_EQ(bfloat16(-infinity).bits, 0xff80);
  EXPECT_EQ(bfloat16(1e300).bits, 0x7f80);
  EXPECT_EQ(bfloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(bfloat16(-0.0F).bits, 0x8000);
  for (const std::uint32_t bits : {0x7f800001U, 0x7fffffffU, 0xff800001U, 0xffffffffU})  // rounding would carry
    EXPECT_TRUE(std::isnan(bfloat16(std::bit_cast<float>(bits))));
}

TEST(BFloat16, VectorsRoundAsNumbersDo) {
  std::vector<float> x;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper)
    for (const std::uint32_t lower : {0U, 1U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU})
      x.push_back(std::bit_cast<float>(upper << 16 | lower));
  const auto n = static_cast<std::int64_t>(x.size()) - 1;  // with a part of a vector
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const TargetGuard guard(target);
    std::vector<bfloat16> y(x.size());
    std::vector<float> back(x.size());
    kernels::element_kernels().round(x.data(), y.data(), n);
    kernels::element_kernels().widen(y.data(), back.data(), n);
    for (std::size_t i = 0; i + 1 < x.size(); ++i) {
      ASSERT_EQ(y[i].bits, bfloat16(x[i]).bits) << hwy::TargetName(target) << ", " << x[i];
      const float widened = y[i];
      ASSERT_EQ(std::memcmp(&back[i], &widened, sizeof(float)), 0) << hwy::TargetName(target);
    }
    EXPECT_EQ(y.back().bits, 0);
  }
}

TEST(BFloat16, IsADType) {
  const Tensor x = Tensor::of<float>({2, 2}, {1, 0.1F, -3, 1e30F}).to(DType::bf16);
  EXPECT_EQ(x.dtype(), DType::bf16);
  EXPECT_EQ(to_string(x), "[[ 1.0000e+00  1.0010e-01]\n [-3.0000e+00  1.0003e+30]] bf16");
  EXPECT_EQ(x.transpose().contiguous().at({0, 1}), -3);
  EXPECT_EQ(x.to(DType::i32).at({1, 0}), -3);
  EXPECT_EQ(full({1}, 1 + 0x1p-8 + 0x1p-40, DType::bf16).item(), 1 + 0x1p-7);
  EXPECT_EQ(eye(2, DType::bf16).at({1, 1}), 1);
  EXPECT_EQ(arange(257, DType::bf16).at({256}), 256);
  EXPECT_EQ(message_of([] { arange(258, DType::bf16); }), "arange: n must be at most 257 for bf16 but is 258");
  EXPECT_EQ(message_of([&] { x.data<float>(); }), "Tensor::data: asked for f32 but the tensor is bf16");
}

}  // namespace
}  // namespace braid::bfloat16_test
