#include <braid/core/format.h>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include <tests/support.h>

namespace braid::format_test {
namespace {

// The expected texts are numpy's (array2string with floatmode="maxprec"), followed by the dtype.

TEST(Format, PrintsScalars) {
  EXPECT_EQ(to_string(scalar(3)), "3. f32");
  EXPECT_EQ(to_string(scalar(-0.125, DType::f64)), "-0.125 f64");
  EXPECT_EQ(to_string(scalar(7, DType::i32)), "7 i32");
}

TEST(Format, AlignsPoints) {
  EXPECT_EQ(to_string(Tensor::of<float>({3}, {1, -2.5F, 10.25F})), "[ 1.   -2.5  10.25] f32");
  EXPECT_EQ(to_string(Tensor::of<double>({2, 2}, {1, -0.25, 3, 4})),
            "[[ 1.   -0.25]\n"
            " [ 3.    4.  ]] f64");
}

TEST(Format, SeparatesMatricesByEmptyLines) {
  EXPECT_EQ(to_string(arange(8).reshape({2, 2, 2})),
            "[[[0. 1.]\n"
            "  [2. 3.]]\n"
            "\n"
            " [[4. 5.]\n"
            "  [6. 7.]]] f32");
}

TEST(Format, PrintsIntegers) { EXPECT_EQ(to_string(Tensor::of<std::int32_t>({3}, {-5, 0, 12})), "[-5  0 12] i32"); }

TEST(Format, PrintsViews) {
  EXPECT_EQ(to_string(arange(4).reshape({2, 2}).transpose()), "[[0. 2.]\n [1. 3.]] f32");
  EXPECT_EQ(to_string(scalar(1).broadcast_to({3})), "[1. 1. 1.] f32");
}

TEST(Format, ShowsTheShapeOfWhatIsEmpty) {
  EXPECT_EQ(to_string(zeros({0})), "[] f32 [0]");
  EXPECT_EQ(to_string(zeros({2, 0, 3}, DType::i32)), "[] i32 [2, 0, 3]");
}

TEST(Format, PrintsDtypes) { EXPECT_EQ(fmt::format("{} {:>5}", DType::f64, DType::bf16), "f64  bf16"); }

TEST(Format, NamesAnUndefinedTensor) { EXPECT_EQ(to_string(Tensor()), "undefined"); }

TEST(Format, AlignsWhatIsNotFinite) {
  EXPECT_EQ(to_string(Tensor::of<double>({4}, {1.5, NAN, INFINITY, -INFINITY})), "[ 1.5  nan  inf -inf] f64");
  EXPECT_EQ(to_string(Tensor::of<double>({2}, {NAN, -NAN})), "[nan nan] f64");
}

TEST(Format, PrintsNaNWithoutASign) {
  EXPECT_EQ(formatted("{} {:.2f} {:+.1e} {}", -NAN, -NAN, 0.5, "-nan"), "nan nan +5.0e-01 -nan");
  EXPECT_EQ(fmt::format("{}", Tensor::of<float>({2}, {-NAN, 1}).at({0})), "nan");
  EXPECT_EQ(message_of([] { check_value(false, "f: x must be >= 0 but is {}", -NAN); }),
            "f: x must be >= 0 but is nan");
}

TEST(Format, ShowsTheShortestDigits) {
  EXPECT_EQ(to_string(scalar(0.1), {.precision = 17}), "0.1 f32");
  EXPECT_EQ(to_string(scalar(0.1, DType::f64), {.precision = 17}), "0.1 f64");
  EXPECT_EQ(to_string(scalar(1.0 / 3, DType::f64), {.precision = 17}), "0.3333333333333333 f64");
}

TEST(Format, ObeysThePrecision) {
  const Tensor pi = Tensor::of<double>({2}, {3.14159265, 100});
  EXPECT_EQ(to_string(pi), "[  3.1416 100.    ] f64");
  EXPECT_EQ(to_string(pi, {.precision = 2}), "[  3.14 100.  ] f64");
  EXPECT_EQ(to_string(pi, {.precision = 0}), "[  3. 100.] f64");
}

TEST(Format, SwitchesToScientificNotation) {
  EXPECT_EQ(to_string(scalar(1e8, DType::f64)), "1.e+08 f64");
  EXPECT_EQ(to_string(scalar(12345678, DType::f64)), "12345678. f64");
  EXPECT_EQ(to_string(scalar(0.00005, DType::f64)), "5.e-05 f64");
  EXPECT_EQ(to_string(scalar(0.0001, DType::f64)), "0.0001 f64");
  EXPECT_EQ(to_string(Tensor::of<double>({2}, {0.0005, 0.25})), "[0.0005 0.25  ] f64");
  EXPECT_EQ(to_string(Tensor::of<double>({3}, {0, 1, 1001})), "[0.000e+00 1.000e+00 1.001e+03] f64");
  EXPECT_EQ(to_string(Tensor::of<double>({2}, {1, 1000})), "[   1. 1000.] f64");
  EXPECT_EQ(to_string(Tensor::of<double>({3}, {1e-300, -1.5e200, NAN})), "[ 1.0e-300 -1.5e+200       nan] f64");
  EXPECT_EQ(to_string(Tensor::of<double>({2}, {1e10, 1e-200})), "[1.e+010 1.e-200] f64");
  EXPECT_EQ(to_string(scalar(std::numeric_limits<double>::denorm_min(), DType::f64)), "5.e-324 f64");
}

TEST(Format, SummarisesLargeTensors) {
  EXPECT_EQ(to_string(arange(1001, DType::i32)), "[   0    1    2 ...  998  999 1000] i32 [1001]");
  EXPECT_EQ(to_string(arange(10), {.edge_items = 1, .threshold = 9}), "[0. ... 9.] f32 [10]");
  EXPECT_EQ(to_string(arange(10), {.edge_items = 1, .threshold = 10}), "[0. 1. 2. 3. 4. 5. 6. 7. 8. 9.] f32");
  EXPECT_EQ(to_string(arange(10), {.edge_items = 0, .threshold = 9}), "[...] f32 [10]");
  EXPECT_EQ(to_string(arange(50, DType::i32).reshape({5, 5, 2}), {.edge_items = 1, .threshold = 0}),
            "[[[ 0  1]\n"
            "  ...\n"
            "  [ 8  9]]\n"
            "\n"
            " ...\n"
            "\n"
            " [[40 41]\n"
            "  ...\n"
            "  [48 49]]] i32 [5, 5, 2]");
}

TEST(Format, WrapsLongRows) {
  EXPECT_EQ(to_string(arange(8, DType::i32).reshape({2, 4}), {.line_width = 7}),
            "[[0 1\n"
            "  2 3]\n"
            " [4 5\n"
            "  6 7]] i32");
  EXPECT_EQ(to_string(Tensor::of<float>({2}, {1, 2.5F}), {.line_width = 1}), "[1.\n 2.5] f32");
  EXPECT_EQ(to_string(arange(50, DType::i32)).find('\n'), 72u);  // 24 numbers, as numpy
}

TEST(Format, WorksWithStreamsAndFmt) {
  std::ostringstream stream;
  stream << arange(2);
  EXPECT_EQ(stream.str(), "[0. 1.] f32");
  EXPECT_EQ(fmt::format("{}|{:>12}", arange(2), scalar(1)), "[0. 1.] f32|      1. f32");
}

TEST(Format, RejectsBadOptions) {
  const auto complaint = [](const FormatOptions& options) {
    try {
      to_string(scalar(1), options);
    } catch (const ValueError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(complaint({.precision = 18}), "to_string: precision must be in [0, 17] but is 18");
  EXPECT_EQ(complaint({.edge_items = -1}), "to_string: edge_items and threshold must be >= 0 but are -1 and 1000");
}

}  // namespace
}  // namespace braid::format_test
