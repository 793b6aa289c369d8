#include <braid/autograd/ops/concat.h>

#include <tests/autograd/ops/support.h>

namespace braid::op_tests::concat_test {
namespace {

using ::testing::ThrowsMessage;

const Tensor kA = f64({2, 2}, {1, 2, 3, 4}), kB = f64({2, 1}, {5, 6});

TEST(Concat, JoinsPartsAlongAnAxis) {
  expect_values(concat({kA, kB}, 1), {2, 3}, {1, 2, 5, 3, 4, 6});
  expect_values(concat({kA, kB.transpose()}, 0), {3, 2}, {1, 2, 3, 4, 5, 6});
  expect_values(concat({kA.transpose(), kB, kA}, -1), {2, 5}, {1, 3, 5, 1, 2, 2, 4, 6, 3, 4});
}

TEST(Concat, TakesEmptyPartsAndOnePart) {
  expect_values(concat({zeros({2, 0}, DType::f64), kA}, 1), {2, 2}, {1, 2, 3, 4});
  expect_values(concat({kA}, 0), {2, 2}, {1, 2, 3, 4});
}

TEST(Concat, JoinsManyLongParts) {
  const Tensor a = normal({70, 300}, 1), b = normal({70, 500}, 2);
  const Tensor y = concat({a, b.transpose(0, 1).contiguous().transpose(0, 1)}, 1).value();
  expect_close(y.slice(1, 0, 300), a);
  expect_close(y.slice(1, 300, 800), b);
}

TEST(Concat, GradientsPassGradcheck) {
  for (const int axis : {0, 1, -1})
    expect_gradients([&](auto x) { return concat(x, axis); }, {normal({2, 3, 2}, 1), normal({2, 3, 2}, 2)});
}

TEST(Concat, RejectsShapesThatDifferElsewhere) {
  EXPECT_THAT(
      [] {
        concat({kA, kB}, 0);
      },
      ThrowsMessage<ShapeError>("concat: shapes [2, 2] and [2, 1] must differ in axis 0 only"));
  EXPECT_THAT(
      [] {
        concat({kA, zeros({2}, DType::f64)}, 0);
      },
      ThrowsMessage<ShapeError>("concat: shapes [2, 2] and [2] must differ in axis 0 only"));
}

TEST(Concat, RejectsMixedDtypesAndNoParts) {
  EXPECT_THAT(
      [] {
        concat({kA, zeros({2, 2})}, 0);
      },
      ThrowsMessage<DTypeError>("concat: inputs must have the same dtype but have f64 and f32"));
  EXPECT_THAT([] { concat(std::vector<Var>(), 0); },
              ThrowsMessage<ValueError>("concat: there must be at least one part"));
}

TEST(Stack, PutsPartsAlongANewAxis) {
  const Tensor a = f64({2}, {1, 2}), b = f64({2}, {3, 4});
  expect_values(stack({a, b}, 0), {2, 2}, {1, 2, 3, 4});
  expect_values(stack({a, b}, 1), {2, 2}, {1, 3, 2, 4});
  expect_values(stack({a, b}, -1), {2, 2}, {1, 3, 2, 4});
}

TEST(Stack, GradientsPassGradcheck) {
  for (const int axis : {0, 1, -1})
    expect_gradients([&](auto x) { return stack(x, axis); }, {normal({2, 3}, 1), normal({2, 3}, 2)});
}

TEST(Stack, RejectsPartsOfDifferentShapes) {
  EXPECT_THAT(
      [] {
        stack({kA, kA, kB}, 0);
      },
      ThrowsMessage<ShapeError>("stack: all parts must have shape [2, 2] but part 2 has [2, 1]"));
  EXPECT_THAT([] { stack(std::vector<Var>(), 0); },
              ThrowsMessage<ValueError>("stack: there must be at least one part"));
}

}  // namespace
}  // namespace braid::op_tests::concat_test
