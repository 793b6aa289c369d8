#include <tests/autograd/op_errors.h>

namespace braid::error_messages_test {

void integers(Table& table) {
  Rng rng(0);
  table.throws<DTypeError>("exp", [] { exp(kInt); });
  table.throws<DTypeError>("expm1", [] { expm1(kInt); });
  table.throws<DTypeError>("log", [] { log(kInt); });
  table.throws<DTypeError>("log1p", [] { log1p(kInt); });
  table.throws<DTypeError>("sqrt", [] { sqrt(kInt); });
  table.throws<DTypeError>("rsqrt", [] { rsqrt(kInt); });
  table.throws<DTypeError>("pow", [] { pow(kInt, 2); });
  table.throws<DTypeError>("sin", [] { sin(kInt); });
  table.throws<DTypeError>("cos", [] { cos(kInt); });
  table.throws<DTypeError>("tanh", [] { tanh(kInt); });
  table.throws<DTypeError>("sigmoid", [] { sigmoid(kInt); });
  table.throws<DTypeError>("softplus", [] { softplus(kInt); });
  table.throws<DTypeError>("relu", [] { relu(kInt); });
  table.throws<DTypeError>("gelu", [] { gelu(kInt); });
  table.throws<DTypeError>("gelu_erf", [] { gelu_erf(kInt); });
  table.throws<DTypeError>("silu", [] { silu(kInt); });
  table.throws<DTypeError>("mean", [] { mean(kInt); });
  table.throws<DTypeError>("var", [] { var(kInt); });
  table.throws<DTypeError>("stddev", [] { stddev(kInt); });
  table.throws<DTypeError>("norm", [] { norm(kInt); });
  table.throws<DTypeError>("logsumexp", [] { logsumexp(kInt); });
  table.throws<DTypeError>("softmax", [] { softmax(kInt); });
  table.throws<DTypeError>("log_softmax", [] { log_softmax(kInt); });
  table.throws<DTypeError>("cumsum", [] { cumsum(kInt); });
  table.throws<DTypeError>("linear_scan", [] { linear_scan(kInt, kInt, 0); });
  table.throws<DTypeError>("mse_loss", [] { mse_loss(kInt, kInt); });
  table.throws<DTypeError>("group_norm", [] { group_norm(kInt, 1); });
  table.throws<DTypeError>("layer_norm", [] { layer_norm(kInt); });
  table.throws<DTypeError>("rms_norm", [] { rms_norm(kInt); });
  table.throws<DTypeError>("unfold", [] { unfold(ones({1, 4, 4, 3}, DType::i32), 2); });
  table.throws<DTypeError>("max_pool2d", [] { max_pool2d(ones({1, 4, 4, 3}, DType::i32), 2); });
  table.throws<DTypeError>("mean_pool2d", [] { mean_pool2d(ones({1, 4, 4, 3}, DType::i32), 2); });
  table.throws<DTypeError>("rotary_embedding", [] { rotary_embedding(ones({1, 1, 1, 2}, DType::i32)); });
  table.throws<DTypeError>("dropout", [&] { dropout(kInt, 0.5, rng); });
  table.throws<ValueError>("dropout", [&] { dropout(kX, 1, rng); });
  table.throws<ValueError>("dropout", [&] { dropout(kX, -0.5, rng); });
}

void layers(Table& table) {
  table.throws<ShapeError>("matmul", [] { matmul(ones({3}), kX); });
  table.throws<ShapeError>("matmul", [] { matmul(kX, ones({2})); });
  table.throws<ShapeError>("matmul", [] { matmul(kScalar, kX); });
  table.throws<ShapeError>("matmul", [] { matmul(ones({2, 2, 3}), ones({3, 3, 2})); });
  table.throws<ShapeError>("linear", [] { linear(kScalar, kX); });
  table.throws<ShapeError>("rms_norm", [] { rms_norm(kScalar); });
  table.throws<ShapeError>("layer_norm", [] { layer_norm(kScalar); });
  table.throws<ShapeError>("group_norm", [] { group_norm(kScalar, 1); });
  table.throws<ValueError>("group_norm", [] { group_norm(kX, 2); });
  table.throws<ShapeError>("group_norm", [] { group_norm(kScalar, 1, 1e-5, Channels::first); });
  table.throws<ShapeError>("conv1d", [] { conv1d(kX, kX); });
  table.throws<ShapeError>("conv1d", [] { conv1d(kX, kX, {.channels = Channels::first}); });
  table.throws<ShapeError>("conv1d", [] { conv1d(ones({1, 2, 3}), ones({2, 3, 4})); });
  table.throws<ShapeError>("conv1d", [] { conv1d(ones({1, 2, 3}), ones({2, 3, 1}), kX); });
  table.throws<ValueError>("conv1d", [] { conv1d(ones({1, 2, 3}), ones({2, 3, 1}), {.stride = 0}); });
  table.throws<ValueError>("conv1d", [] { conv1d(ones({1, 2, 3}), ones({2, 3, 1}), {.groups = 2}); });
  table.throws<ShapeError>("conv2d", [] { conv2d(kX, kX); });
  table.throws<ShapeError>("conv2d", [] { conv2d(kX, kX, {.channels = Channels::first}); });
  table.throws<ShapeError>("conv2d", [] { conv2d(kPicture, ones({2, 2, 3, 3})); });
  table.throws<ShapeError>("conv2d", [] { conv2d(kPicture, ones({2, 3, 5, 5})); });
  table.throws<ValueError>("conv2d", [] { conv2d(kPicture, ones({2, 3, 1, 1}), {.padding = -1}); });
  table.throws<ValueError>("conv2d", [] { conv2d(kPicture, ones({2, 3, 1, 1}), {.groups = 2}); });
  table.throws<ShapeError>("unfold", [] { unfold(kX, 2); });
  table.throws<ShapeError>("unfold", [] { unfold(kPicture, 5); });
  table.throws<ValueError>("unfold", [] { unfold(kPicture, 2, {.stride = 0}); });
  table.throws<ShapeError>("max_pool2d", [] { max_pool2d(kX, 2); });
  table.throws<ValueError>("max_pool2d", [] { max_pool2d(kPicture, 2, {.padding = 2}); });
  table.throws<ShapeError>("mean_pool2d", [] { mean_pool2d(kX, 2); });
  table.throws<ValueError>("mean_pool2d", [] { mean_pool2d(kPicture, 2, {.dilation = 0}); });
  table.throws<ShapeError>("attention", [] { attention(kX, kX, kX); });
  table.throws<ValueError>("attention", [] {
    const Var x = ones({1, 1, 1, 2});
    attention(x, x, x, {.dropout = 1});
  });
  table.throws<ShapeError>("rotary_embedding", [] { rotary_embedding(kX); });
  table.throws<ShapeError>("rotary_embedding", [] { rotary_embedding(ones({1, 1, 1, 3})); });
  table.throws<ShapeError>("rotary_embedding", [] { rotary_embedding(ones({1, 1, 1, 2}), RotaryTurns{{1, 1}}); });
  table.throws<ValueError>("rotary_embedding", [] { rotary_embedding(ones({1, 1, 1, 2}), -1); });
  throws<ValueError>("rotary_frequencies", [] { rotary_frequencies(1, 0); });
}

void sums(Table& table) {
  table.throws<ValueError>("einsum", [] { einsum("ij-k", kX); });
  table.throws<ShapeError>("einsum", [] { einsum("ijk->i", kX); });
  table.throws<ValueError>("einsum", [] { einsum("ij,jk->ik", {kX}); });
  table.throws<ValueError>("einsum", [] { einsum("->", {}); });
  table.throws<ShapeError>("einsum", [] { einsum("...i,...i->i", {kX, ones({4, 3})}); });
  table.throws<ValueError>("einsum", [] { einsum("abcdefgh,abcdijkl,efghijkl->aei", {kRank8, kRank8, kRank8}); });
  table.throws<ValueError>("einsum", [] {
    const Var x = ones({1, 1, 1, 1, 1});
    einsum("abcde,fghij->abcdefghij", {x, x});
  });
  table.throws<ShapeError>("cross_entropy", [] { cross_entropy(kScalar, kIds); });
  table.throws<DTypeError>("cross_entropy", [] { cross_entropy(kInt, kX); });
  table.throws<ValueError>("cross_entropy", [] { cross_entropy(kX, kIds, {.label_smoothing = 2}); });
  table.throws<ShapeError>("cross_entropy", [] { cross_entropy(kX, kIds, {.class_weights = kX}); });
  table.throws<ShapeError>("cross_entropy", [] { cross_entropy(kX, kInt); });
  table.throws<ValueError>("cross_entropy", [] { cross_entropy(kX, kHighIds); });
  table.throws<ShapeError>("binary_cross_entropy_with_logits",
                           [] { binary_cross_entropy_with_logits(kX, kX, Reduction::mean, kY); });
}

}  // namespace braid::error_messages_test
