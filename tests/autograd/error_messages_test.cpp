// Every error that a docstring of an op names: see tests/throws.h. Whatever is wrong with a call, its message begins
// with the op that the user called.

#include <cmath>

#include <tests/autograd/op_errors.h>
#include <tests/autograd/op_registry.h>
#include <tests/support.h>

namespace braid::error_messages_test {
namespace {

void two_operands(Table& table) {
  using V = const Var&;
  table.throws_of_two<ShapeError, DTypeError>("add", [](V a, V b) { add(a, b); });
  table.throws_of_two<ShapeError, DTypeError>("sub", [](V a, V b) { sub(a, b); });
  table.throws_of_two<ShapeError, DTypeError>("mul", [](V a, V b) { mul(a, b); });
  table.throws_of_two<ShapeError, DTypeError>("div", [](V a, V b) { div(a, b); });
  table.throws_of_two<ShapeError, DTypeError>("pow", [](V a, V b) { pow(a, b); });
  table.throws_of_two<ShapeError, DTypeError>("maximum", [](V a, V b) { maximum(a, b); });
  table.throws_of_two<ShapeError, DTypeError>("minimum", [](V a, V b) { minimum(a, b); });
  table.throws_of_two<ShapeError, DTypeError>("where", [](V a, V b) { where(kX, a, b); });
  table.throws_of_two<ShapeError, DTypeError>("where", [](V a, V b) { where(a, b, kX); });
  table.throws_of_two<ShapeError, DTypeError>("equal", [](V a, V b) { equal(a, b); });
  table.throws_of_two<ShapeError, DTypeError>("not_equal", [](V a, V b) { not_equal(a, b); });
  table.throws_of_two<ShapeError, DTypeError>("less", [](V a, V b) { less(a, b); });
  table.throws_of_two<ShapeError, DTypeError>("less_equal", [](V a, V b) { less_equal(a, b); });
  table.throws_of_two<ShapeError, DTypeError>("greater", [](V a, V b) { greater(a, b); });
  table.throws_of_two<ShapeError, DTypeError>("greater_equal", [](V a, V b) { greater_equal(a, b); });
  table.throws_of_two<ShapeError, DTypeError>("mse_loss", [](V a, V b) { mse_loss(a, b); });
  table.throws_of_two<ShapeError, DTypeError>("kl_divergence", [](V a, V b) { kl_divergence(a, b); });
  table.throws_of_two<ShapeError, DTypeError>("cross_entropy", [](V a, V b) { cross_entropy(a, b); });
  table.throws_of_two<ShapeError, DTypeError>("matmul", [](V a, V b) { matmul(a, b); });
  table.throws_of_two<ShapeError, DTypeError>("linear", [](V a, V b) { linear(a, b); });
  table.throws_of_two<ShapeError, DTypeError>("linear", [](V a, V b) { linear(a, a, b); });
  table.throws_of_two<ShapeError, DTypeError>("rms_norm", [](V a, V b) { rms_norm(a, b); });
  table.throws_of_two<ShapeError, DTypeError>("layer_norm", [](V a, V b) { layer_norm(a, b, b); });
  table.throws_of_two<ShapeError, DTypeError>("group_norm", [](V a, V b) { group_norm(a, 1, b, b); });
  table.throws_of_two<ShapeError, DTypeError>("linear_scan", [](V a, V b) { linear_scan(a, b, 0); });
  table.throws_of_two<ShapeError, DTypeError>("concat", [](V a, V b) { concat({a, b}, 0); });
  table.throws_of_two<ShapeError, DTypeError>("stack", [](V a, V b) { stack({a, b}, 0); });
  table.throws_of_two<ShapeError, DTypeError>("einsum", [](V a, V b) { einsum("ij,ij->i", {a, b}); });
  table.throws_of_two<ShapeError, DTypeError>("conv1d", [](V a, V b) {
    conv1d(reshape(a, {1, 1, -1}), reshape(b, {1, -1, 1}));
  });
  table.throws_of_two<ShapeError, DTypeError>("conv2d", [](V a, V b) {
    conv2d(reshape(a, {1, 1, 1, -1}), reshape(b, {1, -1, 1, 1}));
  });
  table.throws_of_two<ShapeError, DTypeError>("attention", [](V a, V b) {
    attention(reshape(a, {1, 1, 1, -1}), reshape(b, {1, 1, 1, -1}), reshape(a, {1, 1, 1, -1}));
  });
  table.throws_of_two<ShapeError, DTypeError>("binary_cross_entropy_with_logits",
                                              [](V a, V b) { binary_cross_entropy_with_logits(a, b); });
}

void axes(Table& table) {
  table.throws_along<ShapeError>("sum", [](const Axes& axes) { sum(kX, axes); });
  table.throws_along<ShapeError>("mean", [](const Axes& axes) { mean(kX, axes); });
  table.throws_along<ShapeError>("max", [](const Axes& axes) { max(kX, axes); });
  table.throws_along<ShapeError>("min", [](const Axes& axes) { min(kX, axes); });
  table.throws_along<ShapeError>("var", [](const Axes& axes) { var(kX, axes); });
  table.throws_along<ShapeError>("stddev", [](const Axes& axes) { stddev(kX, axes); });
  table.throws_along<ShapeError>("norm", [](const Axes& axes) { norm(kX, axes); });
  table.throws_along<ShapeError>("logsumexp", [](const Axes& axes) { logsumexp(kX, axes); });
  table.throws_along<ShapeError>("softmax", [](const Axes& axes) { softmax(kX, axes); });
  table.throws_along<ShapeError>("log_softmax", [](const Axes& axes) { log_softmax(kX, axes); });
  table.throws_along<ShapeError>("flip", [](const Axes& axes) { flip(kX, axes); });
  table.throws_along<ShapeError>("permute", [](const Axes& axes) { permute(kX, axes); });
  table.throws<ShapeError>("max", [] { max(zeros({2, 0})); });
  table.throws<ShapeError>("min", [] { min(zeros({2, 0}), 1); });
  table.throws<ShapeError>("permute", [] { permute(kX, {0, 3}); });
  table.throws<ShapeError>("argmax", [] { argmax(kX, 2); });
  table.throws<ShapeError>("argmax", [] { argmax(zeros({2, 0}), 1); });
  table.throws<ShapeError>("argmin", [] { argmin(kX, -3); });
  table.throws<ShapeError>("argmin", [] { argmin(zeros({2, 0}), 1); });
  table.throws<ShapeError>("cumsum", [] { cumsum(kX, 2); });
  table.throws<ShapeError>("linear_scan", [] { linear_scan(kX, kX, 2); });
  table.throws<ShapeError>("nonzero", [] { nonzero(zeros({1}).broadcast_to({std::int64_t{1} << 32, 0})); });
  table.throws<ShapeError>("roll", [] { roll(kX, 2, 1); });
  table.throws<ShapeError>("sort", [] { sort(kX, 2); });
  table.throws<ShapeError>("argsort", [] { argsort(kX, 2); });
  table.throws<ShapeError>("topk", [] { topk(kX, 1, -3); });
  table.throws<ValueError>("topk", [] { topk(kX, 4); });
  table.throws<ValueError>("topk", [] { topk(kX, -1); });
  table.throws<ValueError>("sum", [] { sum(full({2}, 2147483647, DType::i32)); });
}

void views(Table& table) {
  table.throws<ShapeError>("transpose", [] { transpose(kX, 0, 2); });
  table.throws<ShapeError>("transpose", [] { transpose(ones({2})); });
  table.throws<ShapeError>("reshape", [] { reshape(kX, {4, -1}); });
  table.throws<ShapeError>("reshape", [] { reshape(kX, {-1, -1}); });
  table.throws<ShapeError>("reshape", [] { reshape(kX, {2, 3, 1, 1, 1, 1, 1, 1, 1}); });
  table.throws<ShapeError>("reshape", [] { reshape(kX, Shape{7}); });
  table.throws<ShapeError>("expand_dims", [] { expand_dims(kX, 4); });
  table.throws<ShapeError>("expand_dims", [] { expand_dims(kRank8, 0); });
  table.throws<ShapeError>("squeeze", [] { squeeze(kX, 0); });
  table.throws<ShapeError>("squeeze", [] { squeeze(kX, 2); });
  table.throws<ShapeError>("slice", [] { slice(kX, 2, 0, 1); });
  table.throws<ShapeError>("slice", [] { slice(kX, 2, -1, 1); });
  table.throws<ShapeError>("slice", [] { slice(kX, 0, 1, 5); });
  table.throws<ShapeError>("slice", [] { slice(kX, 0, 1, 5, 2); });
  table.throws<ShapeError>("slice", [] { slice(kX, 0, 0, 1, -1); });
  table.throws<ValueError>("slice", [] { slice(kX, 0, 0, 1, 0); });
  table.throws<ShapeError>("select", [] { select(kX, 2, 0); });
  table.throws<ShapeError>("select", [] { select(kX, -3, -1); });
  table.throws<ShapeError>("select", [] { Var{kX}[5]; });
  table.throws<ShapeError>("broadcast_to", [] { broadcast_to(kX, {2, 4}); });
  table.throws<ShapeError>("broadcast_to", [] { broadcast_to(kX, {3}); });
  table.throws<ShapeError>("split", [] { split(kX, 1, {1, 1}); });
  table.throws<ShapeError>("split", [] { split(kX, 2, {3}); });
  table.throws<ShapeError>("chunk", [] { chunk(kX, 1, 2); });
  table.throws<ShapeError>("chunk", [] { chunk(kX, 2, 1); });
  table.throws<ValueError>("chunk", [] { chunk(kX, 1, 0); });
  table.throws<ShapeError>("unbind", [] { unbind(kX, 2); });
  table.throws<ShapeError>("concat", [] { concat({kX, kX}, 2); });
  table.throws<ValueError>("concat", [] { concat({}, 0); });
  table.throws<ShapeError>("stack", [] { stack({kX, kX}, 5); });
  table.throws<ShapeError>("stack", [] { stack({kRank8}, 0); });
  table.throws<ValueError>("stack", [] { stack({}, 0); });
  table.throws<ShapeError>("tril", [] { tril(ones({2})); });
  table.throws<ShapeError>("triu", [] { triu(ones({})); });
  table.throws<ShapeError>("repeat", [] { repeat(kX, {2}); });
  table.throws<ShapeError>("repeat", [] { repeat(kX, {2, -1}); });
  table.throws<ShapeError>("pad", [] { pad(kX, 2, 1, 1); });
  table.throws<ValueError>("pad", [] { pad(kX, 0, -1, 1); });
  table.throws<ValueError>("pad", [] { pad(kInt, 0, 1, 1, 0.5); });
}

void indices(Table& table) {
  table.throws<ShapeError>("embedding", [] { embedding(ones({3}), kIds); });
  table.throws<ShapeError>("embedding", [] { embedding(kX, zeros(kRank8.shape(), DType::i32)); });
  table.throws<ValueError>("embedding", [] { embedding(kX, kHighIds); });
  table.throws<DTypeError>("embedding", [] { embedding(kX, kX); });
  table.throws<ShapeError>("index_select", [] { index_select(kX, 2, kIds); });
  table.throws<ShapeError>("index_select", [] { index_select(kX, 0, kInt); });
  table.throws<ValueError>("index_select", [] { index_select(kX, 0, kHighIds); });
  table.throws<DTypeError>("index_select", [] { index_select(kX, 0, ones({2})); });
  table.throws<ShapeError>("gather", [] { gather(kX, 2, kInt); });
  table.throws<ShapeError>("gather", [] { gather(kX, 0, kIds); });
  table.throws<ValueError>("gather", [] { gather(kX, 0, kHighRow); });
  table.throws<DTypeError>("gather", [] { gather(kX, 0, kX); });
  table.throws<ShapeError>("scatter_add", [] { scatter_add(kX, 2, kInt, kX); });
  table.throws<ShapeError>("scatter_add", [] { scatter_add(kX, 0, kInt, kY); });
  table.throws<ValueError>("scatter_add", [] { scatter_add(kX, 0, kHighRow, ones({1, 3})); });
  table.throws<DTypeError>("scatter_add", [] { scatter_add(kX, 0, kInt, kDouble); });
  table.throws<ValueError>("one_hot", [] { one_hot(kHighIds, 9); });
  table.throws<DTypeError>("one_hot", [] { one_hot(kX, 9); });
  table.throws<ShapeError>("one_hot", [] { one_hot(zeros(kRank8.shape(), DType::i32), 9); });
  table.throws<ShapeError>("masked_fill", [] { masked_fill(kX, kY, 0); });
  table.throws<ShapeError>("masked_fill", [] { masked_fill(ones({3}), kX, 0); });
  table.throws<ValueError>("masked_fill", [] { masked_fill(kInt, kX, 0.5); });
}

void numbers(Table& table) {
  table.throws<ValueError>("add", [] { kInt + 0.5; });
  table.throws<ValueError>("sub", [] { 1e10 - Var(kInt); });
  table.throws<ValueError>("mul", [] { kInt* std::nan(""); });
  table.throws<ValueError>("div", [] { kInt / 0; });
  table.throws<ValueError>("maximum", [] { maximum(kInt, 0.5); });
  table.throws<ValueError>("minimum", [] { minimum(0.5, kInt); });
  table.throws<ValueError>("where", [] { where(kInt, kInt, 0.5); });
  table.throws<ValueError>("where", [] { where(kX, 0.5, 0, DType::i32); });
  table.throws<ValueError>("equal", [] { equal(kInt, 0.5); });
  table.throws<ValueError>("not_equal", [] { not_equal(kInt, 0.5); });
  table.throws<ValueError>("less", [] { less(kInt, 0.5); });
  table.throws<ValueError>("less", [] { static_cast<void>(0.5 < kInt); });
  table.throws<ValueError>("less_equal", [] { less_equal(kInt, 0.5); });
  table.throws<ValueError>("greater", [] { greater(kInt, 0.5); });
  table.throws<ValueError>("greater_equal", [] { greater_equal(kInt, 0.5); });
  table.throws<DTypeError>("equal", [] { static_cast<void>(kX == kDouble); });
  table.throws<ValueError>("clamp", [] { clamp(kX, 1, 0); });
  table.throws<ValueError>("clamp", [] { clamp(kInt, 0, 0.5); });
}

/// Calls every case of the registry with integers, which may succeed.
void registered_with_integers(Table& table) {
  for (const OpCase& op_case : op_registry()) {
    std::vector<Var> x;
    for (const Shape& shape : op_case.shapes) x.emplace_back(ones(shape, DType::i32));
    const std::string message = message_of([&] { op_case.f(x); });
    if (message == "nothing was thrown") continue;
    EXPECT_TRUE(message.starts_with(op_case.op + ": ")) << op_case.op << " says: " << message;
    table.ops.insert(op_case.op);
  }
}

TEST(ErrorMessages, BeginWithTheOpThatWasCalled) {
  Table table;
  for (const auto& part :
       {two_operands, axes, views, indices, numbers, integers, layers, sums, registered_with_integers})
    part(table);
  for (const OpCase& op_case : op_registry())
    EXPECT_TRUE(table.ops.contains(op_case.op) || op_case.op == "cast" || op_case.op == "neg" || op_case.op == "abs")
        << op_case.op;  // these take anything
}

}  // namespace
}  // namespace braid::error_messages_test
