#include <braid/autograd/ops/compare.h>

#include <braid/autograd/ops/where.h>
#include <tests/autograd/ops/support.h>

namespace braid::op_tests::compare_test {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::ThrowsMessage;

struct Comparison {
  Tensor (*of_vars)(const Var&, const Var&);
  Tensor (*of_a_number)(const Var&, double);
  Tensor (*of_operands)(const Var&, const Var&), (*of_tensors)(const Tensor&, const Tensor&);
  Tensor (*number_right)(const Tensor&, double), (*number_left)(double, const Tensor&);
  bool (*reference)(double, double);
};

/// A function and an operator that is not named; `compare` takes anything.
template <class Compare>
Comparison comparison(Tensor (*of_vars)(const Var&, const Var&), Tensor (*of_a_number)(const Var&, double), Compare) {
  return {of_vars,
          of_a_number,
          [](const Var& a, const Var& b) { return Compare()(a, b); },
          [](const Tensor& a, const Tensor& b) { return Compare()(a, b); },
          [](const Tensor& a, double b) { return Compare()(a, b); },
          [](double a, const Tensor& b) { return Compare()(a, b); },
          [](double a, double b) { return Compare()(a, b); }};
}

const std::vector<Comparison> kComparisons{
    comparison(equal, equal, [](const auto& a, const auto& b) { return a == b; }),
    comparison(not_equal, not_equal, [](const auto& a, const auto& b) { return a != b; }),
    comparison(less, less, [](const auto& a, const auto& b) { return a < b; }),
    comparison(less_equal, less_equal, [](const auto& a, const auto& b) { return a <= b; }),
    comparison(greater, greater, [](const auto& a, const auto& b) { return a > b; }),
    comparison(greater_equal, greater_equal, [](const auto& a, const auto& b) { return a >= b; }),
};

TEST(Compare, GivesOnesAndZerosAsIntegers) {
  const Tensor a = f64({3}, {1, 2, 3});
  EXPECT_EQ(less(a, 2).dtype(), DType::i32);
  EXPECT_THAT(less(a, 2).to_vector<int>(), ElementsAre(1, 0, 0));
  EXPECT_THAT(greater_equal(a, f64({2, 1}, {2, 3})).to_vector<int>(), ElementsAre(0, 1, 1, 0, 0, 1));
}

TEST(Compare, MatchesTheLanguageForEveryPairAndDtype) {
  const std::vector<double> values{-kInfinity, -2, -0.0, 0, 1, 3, kInfinity, kNaN}, integers{-2, 0, 1, 2147483647};
  for (const DType dtype : {DType::f64, DType::f32, DType::i32}) {
    const std::vector<double>& of = dtype == DType::i32 ? integers : values;
    const auto n = std::ssize(of);
    const Tensor x = Tensor::of<double>({n}, std::span(of)).to(dtype);
    for (const auto& [of_vars, of_a_number, of_operands, of_tensors, number_right, number_left, reference] :
         kComparisons) {
      std::vector<int> expected;
      for (const double a : of) {
        for (const double b : of) expected.push_back(reference(a, b));
      }
      EXPECT_THAT(of_vars(x.expand_dims(1), x).to_vector<int>(), ElementsAreArray(expected));
      EXPECT_THAT(of_operands(x.expand_dims(1), x).to_vector<int>(), ElementsAreArray(expected));
      EXPECT_THAT(of_tensors(x.expand_dims(1), x).to_vector<int>(), ElementsAreArray(expected));
      for (std::size_t i = 0; i < of.size(); ++i) {
        EXPECT_EQ(of_a_number(x, of[i]).at({2}), reference(of[2], of[i])) << of[i];
        EXPECT_EQ(number_right(x, of[i]).at({2}), reference(of[2], of[i])) << of[i];
        EXPECT_EQ(number_left(of[i], x).at({2}), reference(of[i], of[2])) << of[i];
      }
    }
  }
}

TEST(Compare, WalksBlocksTailsAndViews) {
  for (const std::int64_t n : {0, 1, 1023, 20001}) {
    const Tensor a = normal({n, 2}, 1).select(1, 0), b = normal({n}, 2);
    const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
    const std::vector<int> result = less(a, b).to_vector<int>();
    for (std::size_t i = 0; i < result.size(); ++i) ASSERT_EQ(result[i], x[i] < y[i]) << i;
  }
}

TEST(Compare, OnATapeIsAConstant) {
  expect_gradients([](auto x) { return where(less(x[0], x[1]), x[0], x[1]); },
                   {f64({3}, {-1, 2, 0.5}), f64({3}, {1, -2, 3})});
}

TEST(Compare, RejectsWhatDoesNotFit) {
  EXPECT_THAT([] { equal(zeros({2}), zeros({3})); },
              ThrowsMessage<ShapeError>("equal: shapes [2] and [3] do not broadcast"));
  EXPECT_THAT([] { less(zeros({2}), zeros({2}, DType::f64)); },
              ThrowsMessage<DTypeError>("less: inputs must have the same dtype but have f32 and f64"));
  EXPECT_THAT([] { greater(zeros({2}, DType::i32), 0.5); },
              ThrowsMessage<ValueError>("greater: value must be an integer that fits i32 but is 0.5"));
}

template <class A, class B>
concept GiveMasks = requires(A a, B b) {
  { a == b } -> std::same_as<Tensor>;
  { a != b } -> std::same_as<Tensor>;
  { a < b } -> std::same_as<Tensor>;
  { a <= b } -> std::same_as<Tensor>;
  { a > b } -> std::same_as<Tensor>;
  { a >= b } -> std::same_as<Tensor>;
};
static_assert(GiveMasks<Var, Var> && GiveMasks<Tensor, Tensor> && GiveMasks<Var, Tensor> && GiveMasks<Tensor, Var>);
static_assert(GiveMasks<Var, double> && GiveMasks<double, Var> && GiveMasks<Tensor, int> && GiveMasks<float, Tensor>);
static_assert(!std::is_constructible_v<bool, Tensor> && !std::is_constructible_v<bool, Var>);  // not if (a == b)

TEST(Compare, OperatorsTakeVariablesOnATape) {
  Tape tape;
  const Var x = tape.watch(f64({3}, {1, 2, 3}));
  EXPECT_THAT((x > 1.5).to_vector<int>(), ElementsAre(0, 1, 1));
  EXPECT_THAT((2 <= x).to_vector<int>(), ElementsAre(0, 1, 1));
  EXPECT_THAT((x == f64({3}, {1, 0, 3})).to_vector<int>(), ElementsAre(1, 0, 1));
  EXPECT_EQ(tape.size(), 1U);
}

TEST(Compare, OperatorsNameTheirFunctions) {
  EXPECT_THAT([] { return 0.5 < zeros({2}, DType::i32); },
              ThrowsMessage<ValueError>("less: value must be an integer that fits i32 but is 0.5"));
  EXPECT_THAT([] { return zeros({2}) == zeros({3}); },
              ThrowsMessage<ShapeError>("equal: shapes [2] and [3] do not broadcast"));
}

}  // namespace
}  // namespace braid::op_tests::compare_test
