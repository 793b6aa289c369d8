// Whatever is wrong with a call, its message begins with the op that the user called.

#include <cmath>
#include <functional>
#include <set>

#include <gtest/gtest.h>

#include <braid/autograd/ops.h>
#include <tests/autograd/op_registry.h>
#include <tests/support.h>

namespace braid::error_messages_test {
namespace {

const Tensor kX = ones({2, 3}), kY = ones({4, 5}), kDouble = ones({2, 3}, DType::f64), kInt = ones({2, 3}, DType::i32);
const Tensor kIds = zeros({2}, DType::i32), kHighIds = full({2}, 9, DType::i32),
             kRank8 = ones({1, 1, 1, 1, 1, 1, 1, 1});

struct BadCall {
  std::string op;
  std::function<Var()> call;
};

/// Shapes that do not broadcast, and dtypes that differ.
template <class F>
void add_binary(std::vector<BadCall>& calls, const char* op, F f) {
  calls.push_back({op, [f] { return f(kX, kY); }});
  calls.push_back({op, [f] { return f(kX, kDouble); }});
}

/// An axis that is not there, one given twice.
template <class F>
void add_along(std::vector<BadCall>& calls, const char* op, F f) {
  calls.push_back({op, [f] { return f(kX, 3); }});
  calls.push_back({op, [f] { return f(kX, {0, -2}); }});
}

std::vector<BadCall> binary_calls() {
  std::vector<BadCall> calls;
  add_binary(calls, "add", [](const Var& a, const Var& b) { return a + b; });
  add_binary(calls, "sub", [](const Var& a, const Var& b) { return a - b; });
  add_binary(calls, "mul", [](const Var& a, const Var& b) { return a * b; });
  add_binary(calls, "div", [](const Var& a, const Var& b) { return a / b; });
  add_binary(calls, "pow", [](const Var& a, const Var& b) { return pow(a, b); });
  add_binary(calls, "maximum", [](const Var& a, const Var& b) { return maximum(a, b); });
  add_binary(calls, "minimum", [](const Var& a, const Var& b) { return minimum(a, b); });
  add_binary(calls, "where", [](const Var& a, const Var& b) { return where(kX, a, b); });
  add_binary(calls, "where", [](const Var& a, const Var& b) { return where(a, b, kX); });
  add_binary(calls, "equal", [](const Var& a, const Var& b) { return equal(a, b); });
  add_binary(calls, "not_equal", [](const Var& a, const Var& b) { return not_equal(a, b); });
  add_binary(calls, "less", [](const Var& a, const Var& b) { return less(a, b); });
  add_binary(calls, "less_equal", [](const Var& a, const Var& b) { return less_equal(a, b); });
  add_binary(calls, "greater", [](const Var& a, const Var& b) { return greater(a, b); });
  add_binary(calls, "greater_equal", [](const Var& a, const Var& b) { return greater_equal(a, b); });
  add_binary(calls, "mse_loss", [](const Var& a, const Var& b) { return mse_loss(a, b); });
  add_binary(calls, "binary_cross_entropy_with_logits",
             [](const Var& a, const Var& b) { return binary_cross_entropy_with_logits(a, b); });
  add_binary(calls, "kl_divergence", [](const Var& a, const Var& b) { return kl_divergence(a, b); });
  add_binary(calls, "cross_entropy", [](const Var& a, const Var& b) { return cross_entropy(a, b); });
  add_binary(calls, "matmul", [](const Var& a, const Var& b) { return matmul(a, b); });
  add_binary(calls, "linear", [](const Var& a, const Var& b) { return linear(a, b); });
  add_binary(calls, "linear", [](const Var& a, const Var& b) { return linear(a, a, b); });
  add_binary(calls, "rms_norm", [](const Var& a, const Var& b) { return rms_norm(a, b); });
  add_binary(calls, "layer_norm", [](const Var& a, const Var& b) { return layer_norm(a, b, b); });
  add_binary(calls, "group_norm", [](const Var& a, const Var& b) { return group_norm(a, 1, b, b); });
  add_binary(calls, "conv1d", [](const Var& a, const Var& b) { return conv1d(expand_dims(a, 0), expand_dims(b, 0)); });
  add_binary(calls, "linear_scan", [](const Var& a, const Var& b) { return linear_scan(a, b, 0); });
  add_binary(calls, "concat", [](const Var& a, const Var& b) { return concat({a, b}, 0); });
  add_binary(calls, "stack", [](const Var& a, const Var& b) { return stack({a, b}, 0); });
  add_binary(calls, "einsum", [](const Var& a, const Var& b) { return einsum("ij,ij->i", {a, b}); });
  add_binary(calls, "attention", [](const Var& a, const Var& b) {
    return attention(reshape(a, {1, 1, 1, -1}), reshape(b, {1, 1, 1, -1}), reshape(a, {1, 1, 1, -1}));
  });
  return calls;
}

std::vector<BadCall> axis_calls() {
  std::vector<BadCall> calls;
  add_along(calls, "sum", [](const Var& x, const Axes& axes) { return sum(x, axes); });
  add_along(calls, "mean", [](const Var& x, const Axes& axes) { return mean(x, axes); });
  add_along(calls, "max", [](const Var& x, const Axes& axes) { return max(x, axes); });
  add_along(calls, "min", [](const Var& x, const Axes& axes) { return min(x, axes); });
  add_along(calls, "var", [](const Var& x, const Axes& axes) { return var(x, axes); });
  add_along(calls, "stddev", [](const Var& x, const Axes& axes) { return stddev(x, axes); });
  add_along(calls, "norm", [](const Var& x, const Axes& axes) { return norm(x, axes); });
  add_along(calls, "logsumexp", [](const Var& x, const Axes& axes) { return logsumexp(x, axes); });
  add_along(calls, "softmax", [](const Var& x, const Axes& axes) { return softmax(x, axes); });
  add_along(calls, "log_softmax", [](const Var& x, const Axes& axes) { return log_softmax(x, axes); });
  add_along(calls, "flip", [](const Var& x, const Axes& axes) { return flip(x, axes); });
  add_along(calls, "permute", [](const Var& x, const Axes& axes) { return permute(x, axes); });
  return calls;
}

std::vector<BadCall> shape_calls() {
  return {
      {"max",
       [] {
         return max(zeros({2, 0}));
       }},
      {"min",
       [] {
         return min(zeros({2, 0}), 1);
       }},
      {"permute",
       [] {
         return permute(kX, {0, 3});
       }},
      {"transpose", [] { return transpose(kX, 0, 2); }},
      {"transpose", [] { return transpose(ones({2})); }},
      {"reshape",
       [] {
         return reshape(kX, {4, -1});
       }},
      {"reshape",
       [] {
         return reshape(kX, {-1, -1});
       }},
      {"reshape",
       [] {
         return reshape(kX, {2, 3, 1, 1, 1, 1, 1, 1, 1});
       }},
      {"reshape", [] { return reshape(kX, Shape{7}); }},
      {"expand_dims", [] { return expand_dims(kX, 4); }},
      {"expand_dims", [] { return expand_dims(kRank8, 0); }},
      {"squeeze", [] { return squeeze(kX, 0); }},
      {"squeeze", [] { return squeeze(kX, 2); }},
      {"slice", [] { return slice(kX, 2, 0, 1); }},
      {"slice", [] { return slice(kX, 2, -1, 1); }},
      {"slice", [] { return slice(kX, 0, 1, 5); }},
      {"slice", [] { return slice(kX, 0, 1, 5, 2); }},
      {"slice", [] { return slice(kX, 0, 0, 1, -1); }},
      {"slice", [] { return slice(kX, 0, 0, 1, 0); }},
      {"split",
       [] {
         return split(kX, 1, {1, 1})[0];
       }},
      {"split", [] { return split(kX, 2, {3})[0]; }},
      {"chunk", [] { return chunk(kX, 1, 2)[0]; }},
      {"chunk", [] { return chunk(kX, 1, 0)[0]; }},
      {"chunk", [] { return chunk(kX, 2, 1)[0]; }},
      {"unbind", [] { return unbind(kX, 2)[0]; }},
      {"roll", [] { return roll(kX, 2, 1); }},
      {"pad", [] { return pad(kX, 2, 1, 1); }},
      {"pad", [] { return pad(kX, 0, -1, 1); }},
      {"pad", [] { return pad(kInt, 0, 1, 1, 0.5); }},
      {"repeat", [] { return repeat(kX, {2}); }},
      {"repeat",
       [] {
         return repeat(kX, {2, -1});
       }},
      {"tril", [] { return tril(ones({2})); }},
      {"triu", [] { return triu(ones({})); }},
      {"masked_fill", [] { return masked_fill(kX, kY, 0); }},
      {"masked_fill", [] { return masked_fill(ones({3}), kX, 0); }},
      {"masked_fill", [] { return masked_fill(kInt, kX, 0.5); }},
      {"argmax", [] { return argmax(kX, 2); }},
      {"argmax",
       [] {
         return argmax(zeros({2, 0}), 1);
       }},
      {"argmin", [] { return argmin(kX, -3); }},
      {"select", [] { return select(kX, 2, 0); }},
      {"select", [] { return select(kX, -3, -1); }},
      {"select", [] { return Var(kX)[5]; }},
      {"broadcast_to",
       [] {
         return broadcast_to(kX, {2, 4});
       }},
      {"broadcast_to", [] { return broadcast_to(kX, {3}); }},
      {"concat", [] { return concat({}, 0); }},
      {"concat",
       [] {
         return concat({kX, kX}, 2);
       }},
      {"stack", [] { return stack({}, 0); }},
      {"stack",
       [] {
         return stack({kX, kX}, 5);
       }},
      {"stack", [] { return stack({kRank8}, 0); }},
  };
}

std::vector<BadCall> indexing_calls() {
  return {
      {"embedding", [] { return embedding(ones({3}), kIds); }},
      {"embedding", [] { return embedding(kX, kHighIds); }},
      {"embedding", [] { return embedding(kX, kX); }},
      {"embedding", [] { return embedding(kX, zeros(kRank8.shape(), DType::i32)); }},
      {"index_select", [] { return index_select(kX, 2, kIds); }},
      {"index_select", [] { return index_select(kX, 0, kHighIds); }},
      {"index_select", [] { return index_select(kX, 0, kInt); }},
      {"gather", [] { return gather(kX, 2, kInt); }},
      {"gather", [] { return gather(kX, 0, kIds); }},
      {"gather", [] { return gather(kX, 0, kX); }},
      {"one_hot", [] { return one_hot(kHighIds, 9); }},
      {"one_hot", [] { return one_hot(kX, 9); }},
      {"one_hot", [] { return one_hot(zeros(kRank8.shape(), DType::i32), 9); }},
      {"sort", [] { return sort(kX, 2).values; }},
      {"topk", [] { return topk(kX, 1, -3).values; }},
      {"topk", [] { return topk(kX, 4).values; }},
      {"cumsum", [] { return cumsum(kX, 2); }},
      {"scatter_add", [] { return scatter_add(kX, 2, kInt, kX); }},
      {"scatter_add", [] { return scatter_add(kX, 0, kInt, kY); }},
      {"scatter_add", [] { return scatter_add(kX, 0, kInt, kDouble); }},
  };
}

std::vector<BadCall> other_calls() {
  const Tensor none = ones({});
  return {
      {"clamp", [] { return clamp(kX, 1, 0); }},
      {"clamp", [] { return clamp(kInt, 0, 0.5); }},
      {"add", [] { return kInt + 0.5; }},
      {"sub", [] { return 1e10 - Var(kInt); }},
      {"mul", [] { return kInt * std::nan(""); }},
      {"div", [] { return kInt / 0; }},
      {"maximum", [] { return maximum(kInt, 0.5); }},
      {"minimum", [] { return minimum(0.5, kInt); }},
      {"where", [] { return where(kInt, kInt, 0.5); }},
      {"where", [] { return where(kX, 0.5, 0, DType::i32); }},
      {"less", [] { return less(kInt, 0.5); }},
      {"less", [] { return 0.5 < kInt; }},
      {"equal", [] { return kX == kY; }},
      {"sum", [] { return sum(full({2}, 2147483647, DType::i32)); }},
      {"mean", [] { return mean(kInt); }},
      {"dropout",
       [] {
         Rng rng(0);
         return dropout(kX, 1, rng);
       }},
      {"matmul", [] { return matmul(ones({3}), kX); }},
      {"matmul", [] { return matmul(kX, ones({2})); }},
      {"matmul", [] { return matmul(ones({}), kX); }},
      {"matmul",
       [] {
         return matmul(ones({2, 2, 3}), ones({3, 3, 2}));
       }},
      {"linear", [=] { return linear(none, kX); }},
      {"rms_norm", [=] { return rms_norm(none); }},
      {"layer_norm", [=] { return layer_norm(none); }},
      {"group_norm", [=] { return group_norm(none, 1); }},
      {"group_norm", [] { return group_norm(kX, 2); }},
      {"group_norm", [] { return group_norm(kX, 2, 1e-5, Channels::first); }},
      {"conv1d", [] { return conv1d(kX, kX); }},
      {"conv1d", [] { return conv1d(kX, kX, {.channels = Channels::first}); }},
      {"conv1d",
       [] {
         return conv1d(ones({1, 2, 3}), ones({2, 3, 4}));
       }},
      {"conv1d",
       [] {
         return conv1d(ones({1, 2, 3}), ones({2, 3, 1}), kX);
       }},
      {"conv1d",
       [] {
         return conv1d(ones({1, 2, 3}), ones({2, 3, 1}), {.stride = 0});
       }},
      {"conv2d", [] { return conv2d(kX, kX); }},
      {"conv2d", [] { return conv2d(kX, kX, {.channels = Channels::first}); }},
      {"conv2d",
       [] {
         return conv2d(ones({1, 4, 4, 3}), ones({2, 2, 3, 3}));
       }},
      {"unfold", [] { return unfold(kX, 2); }},
      {"max_pool2d", [] { return max_pool2d(kX, 2); }},
      {"mean_pool2d", [] { return mean_pool2d(kX, 2); }},
      {"einsum", [] { return einsum("ij-k", kX); }},
      {"einsum", [] { return einsum("ijk->i", kX); }},
      {"einsum", [] { return einsum("ij,jk->ik", {kX}); }},
      {"einsum", [] { return einsum("->", {}); }},
      {"einsum",
       [] {
         return einsum("...i,...i->i", {kX, ones({4, 3})});
       }},
      {"einsum",
       [] {
         return einsum("abcdefgh,abcdijkl,efghijkl->aei", {kRank8, kRank8, kRank8});
       }},
      {"einsum",
       [] {
         return einsum("abcde,fghij->abcdefghij", {ones({1, 1, 1, 1, 1}), ones({1, 1, 1, 1, 1})});
       }},
      {"attention", [] { return attention(kX, kX, kX); }},
      {"rotary_embedding", [] { return rotary_embedding(kX); }},
      {"rotary_embedding",
       [] {
         return rotary_embedding(ones({1, 1, 1, 2}), -1);
       }},
      {"cross_entropy", [=] { return cross_entropy(none, kIds); }},
      {"cross_entropy", [] { return cross_entropy(kInt, kX); }},
      {"cross_entropy", [] { return cross_entropy(kX, kIds, {.label_smoothing = 2}); }},
      {"cross_entropy", [] { return cross_entropy(kX, kIds, {.class_weights = kX}); }},
      {"binary_cross_entropy_with_logits",
       [] { return binary_cross_entropy_with_logits(kX, kX, Reduction::mean, kY); }},
      {"cross_entropy", [] { return cross_entropy(kX, kInt); }},
      {"cross_entropy", [] { return cross_entropy(kX, kHighIds); }},
  };
}

/// Every case of the registry with integers.
std::vector<BadCall> integer_calls() {
  std::vector<BadCall> calls;
  for (const OpCase& op_case : op_registry())
    calls.push_back({op_case.op, [op_case] {
                       std::vector<Var> x;
                       for (const Shape& shape : op_case.shapes) x.emplace_back(ones(shape, DType::i32));
                       return op_case.f(x);
                     }});
  return calls;
}

std::set<std::string> ops_with_wrong_calls(const std::vector<BadCall>& calls, bool may_succeed) {
  std::set<std::string> ops;
  for (const BadCall& bad : calls) {
    const std::string message = message_of(bad.call);
    if (message == "nothing was thrown" && may_succeed) continue;
    EXPECT_TRUE(message.starts_with(bad.op + ": ")) << bad.op << " says: " << message;
    ops.insert(bad.op);
  }
  return ops;
}

TEST(ErrorMessages, BeginWithTheOpThatWasCalled) {
  std::set<std::string> ops = ops_with_wrong_calls(integer_calls(), true);
  for (const auto& calls : {binary_calls(), axis_calls(), shape_calls(), indexing_calls(), other_calls()})
    ops.merge(ops_with_wrong_calls(calls, false));
  for (const OpCase& op_case : op_registry())
    EXPECT_TRUE(ops.contains(op_case.op) || op_case.op == "cast" || op_case.op == "neg" || op_case.op == "abs")
        << op_case.op;  // these take anything
}

}  // namespace
}  // namespace braid::error_messages_test
