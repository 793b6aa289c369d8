#include <braid/core/dtype.h>

#include <gtest/gtest.h>

#include <tests/support.h>

namespace braid::dtype_test {
namespace {

TEST(DType, HasANameAndASize) {
  EXPECT_EQ(name(DType::f32), "f32");
  EXPECT_EQ(name(DType::f64), "f64");
  EXPECT_EQ(name(DType::i32), "i32");
  EXPECT_EQ(name(DType::bf16), "bf16");
  EXPECT_EQ(size_of(DType::f32), 4U);
  EXPECT_EQ(size_of(DType::f64), 8U);
  EXPECT_EQ(size_of(DType::i32), 4U);
  EXPECT_EQ(size_of(DType::bf16), 2U);
}

TEST(DType, DispatchesToTheElementType) {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::bf16})
    EXPECT_EQ(dispatch(dtype, [](auto zero) { return dtype_of<decltype(zero)>(); }), dtype);
}

TEST(DType, DispatchFloatRejectsIntegersNamingTheOp) {
  EXPECT_EQ(dispatch_float("tanh", DType::f64, [](auto zero) { return sizeof(zero); }), 8U);
  EXPECT_THROW(dispatch_float("tanh", DType::i32, [](auto) {}), DTypeError);
  EXPECT_EQ(message_of([] { dispatch_float("tanh", DType::i32, [](auto) {}); }),
            "tanh: expected a floating-point tensor but has dtype i32");
  EXPECT_EQ(message_of([] { dispatch_float("fft", DType::bf16, [](auto) {}); }),
            "fft: bf16 is not supported here; cast to f32");
  EXPECT_EQ(dispatch_float_or_bf16("tanh", DType::bf16, [](auto zero) { return sizeof(zero); }), 2U);
}

}  // namespace
}  // namespace braid::dtype_test
