// Tensors without elements may have axes of 2^59: nothing walks these, and what they broadcast to is refused or empty.

#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <braid/autograd/ops.h>
#include <braid/core/format.h>
#include <tests/support.h>

namespace braid::huge_axes_test {
namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 59;

/// The gradient of an op at x, in the direction of its own value.
void run(const std::function<Var(const Var&)>& op, const Tensor& x) {
  Tape tape;
  const Var watched = tape.watch(x), y = op(watched);
  EXPECT_EQ(y.value().numel(), 0);
  tape.backward(y, y.value());
  EXPECT_EQ(tape.gradient(watched).shape(), x.shape());
}

TEST(HugeAxes, OfEmptyTensorsAreNotWalked) {
  const Tensor none = zeros({0}, DType::i32);
  const std::vector<std::pair<std::string, std::function<Var(const Var&)>>> ops = {
      {"softmax", [](const Var& x) { return softmax(x); }},
      {"softmax 0", [](const Var& x) { return softmax(x, 0); }},
      {"log_softmax", [](const Var& x) { return log_softmax(x); }},
      {"logsumexp 0", [](const Var& x) { return logsumexp(x, 0); }},
      {"sort", [](const Var& x) { return sort(x).values; }},
      {"topk", [](const Var& x) { return topk(x, 0).values; }},
      {"cumsum 0", [](const Var& x) { return cumsum(x, 0); }},
      {"cumsum", [](const Var& x) { return cumsum(x); }},
      {"var 0", [](const Var& x) { return var(x, 0); }},
      {"stddev 0", [](const Var& x) { return stddev(x, 0); }},
      {"norm 0", [](const Var& x) { return norm(x, 0); }},
      {"binary_cross_entropy", [](const Var& x) { return binary_cross_entropy_with_logits(x, x, Reduction::none); }},
      {"kl_divergence", [](const Var& x) { return kl_divergence(x, x, Reduction::none); }},
      {"exp", [](const Var& x) { return exp(x); }},
      {"mul", [](const Var& x) { return x * x; }},
      {"sum 0", [](const Var& x) { return sum(x, 0); }},
      {"max 0", [](const Var& x) { return max(x, 0); }},
      {"transpose", [](const Var& x) { return transpose(x) * 2; }},
      {"concat",
       [](const Var& x) {
         return concat({x, x}, 1);
       }},
      {"stack", [](const Var& x) { return stack({x}, 0); }},
      {"slice", [](const Var& x) { return slice(x, 0, 1, kHuge) + 1; }},
      {"slice by 2", [](const Var& x) { return slice(x, 0, 1, kHuge, 2) + 1; }},
      {"split",
       [](const Var& x) {
         return split(x, 0, {kHuge / 2, kHuge / 2})[1];
       }},
      {"flip", [](const Var& x) { return flip(x, {}) * 2; }},
      {"roll", [](const Var& x) { return roll(x, 0, 5); }},
      {"pad", [](const Var& x) { return pad(slice(x, 0, 1, kHuge), 0, 0, 1); }},
      {"repeat",
       [](const Var& x) {
         return repeat(x, {1, 5});
       }},
      {"tril", [](const Var& x) { return tril(x); }},
      {"equal", [](const Var& x) { return where(equal(x, x), x, 0); }},
      {"index_select", [&](const Var& x) { return index_select(x, 1, none); }},
      {"index_select 0", [](const Var& x) { return index_select(x, 0, zeros({3}, DType::i32)); }},
      {"gather",
       [](const Var& x) {
         return gather(x, 1, zeros({kHuge, 0}, DType::i32));
       }},
      {"rotary",
       [](const Var& x) {
         return rotary_embedding(reshape(x, {kHuge, 1, 1, 0}));
       }},
      {"matmul",
       [](const Var& x) {
         return matmul(x, zeros({0, 0}));
       }},
      {"einsum",
       [](const Var& x) {
         return einsum("ij,kj->jki", {x, zeros({1, 0})});
       }},
      {"linear",
       [](const Var& x) {
         return linear(x, zeros({0, 0}));
       }},
  };
  for (const auto& [name, op] : ops) {
    SCOPED_TRACE(name);
    run(op, zeros({kHuge, 0}));
  }
  EXPECT_EQ(to_string(zeros({kHuge, 0})), "[] f32 [576460752303423488, 0]");
}

TEST(HugeAxes, OfProductsAreRefusedBeforeAnythingIsAllocated) {
  const std::int64_t before = memory_stats().system_allocations;
  const Tensor x = zeros({kHuge, 0}), row = zeros({0, std::int64_t{1} << 32});
  EXPECT_EQ(message_of([] { zeros({kHuge, 2}); }), "Shape: [576460752303423488, 2] has more than 2^59 elements");
  EXPECT_EQ(message_of([] {
              zeros({kHuge, 0, kHuge});
            }),
            "Shape: [576460752303423488, 0, 576460752303423488] has more than 2^59 elements");
  EXPECT_THROW(x.reshape({0, kHuge, 2}), ShapeError);
  EXPECT_THROW(x.expand_dims(0).broadcast_to({2, kHuge, 0}), ShapeError);
  EXPECT_EQ(message_of([&] {
              x.expand_dims(2) * zeros({1, 1, 2});
            }),
            "mul: [576460752303423488, 0, 2] has more than 2^59 elements");
  EXPECT_THROW(matmul(x, row), ShapeError);
  EXPECT_THROW(concat({x, x}, 0), ShapeError);
  EXPECT_THROW(stack({x, x}, 0), ShapeError);
  EXPECT_LE(memory_stats().system_allocations, before + 3);  // x, row and the third factor, all without elements
}

TEST(HugeAxes, OfResultsThatDoNotFitIntoMemoryThrowBadAlloc) {
  EXPECT_THROW(sum(zeros({kHuge, 0}), 1), std::bad_alloc);
  EXPECT_THROW(logsumexp(zeros({kHuge, 0}), 1), std::bad_alloc);
  EXPECT_THROW(zeros({kHuge}, DType::f64), std::bad_alloc);
}

}  // namespace
}  // namespace braid::huge_axes_test
