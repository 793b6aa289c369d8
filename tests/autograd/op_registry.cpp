#include <tests/autograd/op_registry.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <braid/autograd/ops.h>
#include <braid/core/random.h>

namespace braid {
namespace {

using Vars = std::span<const Var>;
using Cases = std::vector<OpCase>;

Cases arithmetic_cases() {
  return {
      {"add", {{2, 3, 4}, {3, 1}}, {{2, 0, 4}, {0, 1}}, [](Vars x) { return x[0] + x[1]; }},
      {"add", {{2, 3}}, {{2, 0}}, [](Vars x) { return 2.0 + (x[0] + 3.0); }},
      {"sub", {{2, 3, 4}, {3, 1}}, {{2, 0, 4}, {0, 1}}, [](Vars x) { return x[0] - x[1]; }},
      {"sub", {{2, 3}}, {{2, 0}}, [](Vars x) { return 2.0 - (x[0] - 3.0); }},
      {"mul", {{2, 3, 4}, {3, 1}}, {{2, 0, 4}, {0, 1}}, [](Vars x) { return x[0] * x[1]; }},
      {"mul", {{2, 3}}, {{2, 0}}, [](Vars x) { return 2.0 * x[0] * x[0]; }},
      {"div", {{2, 3, 4}, {3, 1}}, {{2, 0, 4}, {0, 1}}, [](Vars x) { return x[0] / x[1]; }, Domain::nonzero},
      {"div", {{2, 3}}, {{2, 0}}, [](Vars x) { return 2.0 / (x[0] / 3.0); }, Domain::nonzero},
      {"neg", {{2, 3}}, {{2, 0}}, [](Vars x) { return -x[0]; }},
  };
}

const Tensor kMask = Tensor::of<std::int32_t>({3, 1}, {1, 0, 1});

Cases elementwise_cases() {
  return {
      {"exp", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return exp(x[0]); }},
      {"expm1", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return expm1(x[0]); }},
      {"sin", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return sin(x[0]); }},
      {"cos", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return cos(x[0]); }},
      {"softplus", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return softplus(x[0]); }},
      {"tanh", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return tanh(x[0]); }},
      {"sigmoid", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return sigmoid(x[0]); }},
      {"relu", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return relu(x[0]); }},
      {"silu", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return silu(x[0]); }},
      {"gelu", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return gelu(x[0]); }},
      {"gelu_erf", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return gelu_erf(x[0]); }},
      {"abs", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return abs(x[0]); }},
      {"log", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return log(x[0]); }, Domain::positive},
      {"log1p", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return log1p(x[0]); }, Domain::positive},
      {"sqrt", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return sqrt(x[0]); }, Domain::positive},
      {"rsqrt", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return rsqrt(x[0]); }, Domain::positive},
      {"pow", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return pow(x[0], 3); }},
      {"pow", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return pow(x[0], -0.5); }, Domain::positive},
      {"pow", {{2, 3, 4}, {3, 1}}, {{2, 0, 4}, {0, 1}}, [](Vars x) { return pow(x[0], x[1]); }, Domain::positive},
      {"pow", {{2, 3}}, {{2, 0}}, [](Vars x) { return pow(1.5, x[0]); }},
      {"maximum", {{2, 3, 4}, {3, 1}}, {{2, 0, 4}, {0, 1}}, [](Vars x) { return maximum(x[0], x[1]); }},
      {"minimum", {{2, 3, 4}, {3, 1}}, {{2, 0, 4}, {0, 1}}, [](Vars x) { return minimum(x[0], x[1]); }},
      {"maximum", {{2, 3}}, {{2, 0}}, [](Vars x) { return maximum(x[0], 0.1) * maximum(-0.1, x[0]); }},
      {"minimum", {{2, 3}}, {{2, 0}}, [](Vars x) { return minimum(x[0], 0.1) * minimum(-0.1, x[0]); }},
      {"clamp", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return clamp(x[0], -0.2, 0.2); }},
      {"clamp", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return clamp(x[0], -2, 0.2); }},
      {"where", {{2, 3, 4}, {3, 1}}, {{2, 3, 0}, {3, 1}}, [](Vars x) { return where(kMask, x[0], x[1]); }},
      {"where", {{3, 4}}, {{3, 0}}, [](Vars x) { return where(kMask, x[0], 0.0) - where(kMask, 0.0, x[0]); }},
      {"masked_fill", {{2, 3, 4}}, {{2, 3, 0}}, [](Vars x) { return masked_fill(x[0], kMask, 0.5); }},
      {"cast", {{2, 3}}, {{2, 0}}, [](Vars x) { return cast(x[0], x[0].dtype()); }},
  };
}

Cases reduction_cases() {
  return {
      {"sum", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return sum(x[0]); }},
      {"sum",
       {{2, 3, 4}},
       {{2, 0, 4}},
       [](Vars x) {
         return sum(x[0], {0, 2});
       }},
      {"sum", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return sum(x[0], 1, true); }},
      {"mean",
       {{2, 3, 4}},
       {{2, 0, 4}},
       [](Vars x) {
         return mean(x[0], {0, -1});
       }},
      {"mean", {{2, 3, 4}}, {{0, 3, 4}}, [](Vars x) { return mean(x[0], 1, true); }},
      {"max",
       {{2, 3, 4}},
       {{0, 3, 4}},
       [](Vars x) {
         return max(x[0], {1, 2});
       }},
      {"min", {{2, 3, 4}}, {{0, 3, 4}}, [](Vars x) { return min(x[0], 2, true); }},
      {"var",
       {{2, 3, 4}},
       {{2, 0, 4}},
       [](Vars x) {
         return var(x[0], {0, -1});
       }},
      {"var", {{2, 3, 4}}, {{0, 3, 4}}, [](Vars x) { return var(x[0], 1, true, 0); }},
      {"stddev", {{2, 3, 4}}, {{0, 3, 4}}, [](Vars x) { return stddev(x[0], 2, true); }},
      {"norm",
       {{2, 3, 4}},
       {{2, 0, 4}},
       [](Vars x) {
         return norm(x[0], {0, 2});
       }},
      {"norm", {{2, 3, 4}}, {{0, 3, 4}}, [](Vars x) { return norm(x[0], 1, true); }},
      {"linear_scan",
       {{2, 4, 3}, {2, 4, 3}},
       {{2, 0, 3}, {2, 0, 3}},
       [](Vars x) { return linear_scan(x[0], x[1], 1); }},
      {"linear_scan", {{3, 1}, {2, 3, 4}}, {{3, 1}, {2, 3, 0}}, [](Vars x) { return linear_scan(x[0], x[1], -2); }},
      {"cumsum", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return cumsum(x[0], 1); }},
      {"logsumexp",
       {{2, 3, 4}},
       {{2, 0, 4}},
       [](Vars x) {
         return logsumexp(x[0], {0, 2});
       }},
      {"logsumexp", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return logsumexp(x[0], {2}, true); }},
      {"softmax", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return softmax(x[0]); }},
      {"softmax",
       {{2, 3, 4}},
       {{2, 0, 4}},
       [](Vars x) {
         return softmax(x[0], {0, 2});
       }},
      {"log_softmax", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return log_softmax(x[0]); }},
      {"log_softmax", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return log_softmax(x[0], 1); }},
  };
}

Cases product_cases() {
  return {
      {"matmul", {{3, 4}, {4, 2}}, {{3, 0}, {0, 2}}, [](Vars x) { return matmul(x[0], x[1]); }},
      {"matmul", {{2, 1, 3, 4}, {3, 4, 2}}, {{2, 1, 0, 4}, {3, 4, 2}}, [](Vars x) { return matmul(x[0], x[1]); }},
      {"matmul", {{2, 3, 4}, {4, 5}}, {{0, 3, 4}, {4, 5}}, [](Vars x) { return matmul(x[0], x[1]); }},
      {"matmul", {{2, 3, 4}, {4}}, {{2, 0, 4}, {4}}, [](Vars x) { return matmul(x[0], x[1]); }},
      {"matmul", {{4}, {2, 4, 3}}, {{0}, {2, 0, 3}}, [](Vars x) { return matmul(x[0], x[1]); }},
      {"matmul", {{4}, {4}}, {{0}, {0}}, [](Vars x) { return matmul(x[0], x[1]); }},
      {"matmul", {{4, 3}, {2, 4}}, {{0, 3}, {2, 0}}, [](Vars x) { return matmul(transpose(x[0]), transpose(x[1])); }},
      {"einsum", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return einsum("ijk->ki", {x[0]}); }},
      {"einsum", {{2, 3, 4}, {2, 4, 2}}, {{2, 0, 4}, {2, 4, 2}}, [](Vars x) { return einsum("bij,bjk->kbi", x); }},
      {"einsum",
       {{2, 1, 3}, {4, 3}, {2, 4}},
       {{2, 1, 0}, {4, 0}, {2, 4}},
       [](Vars x) { return einsum("...i,...i,...->...", x); }},
      {"einsum", {{2, 3}, {3, 4}}, {{2, 0}, {0, 4}}, [](Vars x) { return einsum("ij,jk", x[0], x[1]); }},
      {"einsum", {{3, 3}, {3, 2}}, {{0, 0}, {0, 2}}, [](Vars x) { return einsum("ii,ij->ij", x); }},
      {"conv1d",
       {{2, 5, 3}, {2, 3, 3}, {2}},
       {{0, 5, 3}, {2, 3, 3}, {2}},
       [](Vars x) { return conv1d(x[0], x[1], x[2], {.stride = 2, .padding = 1}); }},
      {"conv1d",
       {{2, 5, 3}, {3, 1, 4}},
       {{2, 0, 3}, {3, 1, 4}},
       [](Vars x) { return conv1d(x[0], x[1], {.groups = 3, .causal = true}); }},
      {"conv1d",
       {{2, 3, 5}, {2, 3, 3}, {2}},
       {{0, 3, 5}, {2, 3, 3}, {2}},
       [](Vars x) { return conv1d(x[0], x[1], x[2], {.channels = Channels::first}); }},
      {"conv2d",
       {{2, 5, 4, 4}, {6, 2, 3, 2}, {6}},
       {{0, 5, 4, 4}, {6, 2, 3, 2}, {6}},
       [](Vars x) {
         return conv2d(x[0], x[1], x[2], {.stride = {2, 1}, .padding = {1, 0}, .groups = 2});
       }},
      {"conv2d",
       {{1, 4, 5, 3}, {3, 1, 2, 3}},
       {{1, 4, 5, 0}, {0, 0, 2, 3}},
       [](Vars x) { return conv2d(x[0], x[1], {.padding = 1, .groups = std::max<std::int64_t>(x[0].size(3), 1)}); }},
      {"unfold",
       {{2, 4, 5, 2}},
       {{0, 4, 5, 2}},
       [](Vars x) {
         return unfold(x[0], {2, 3}, {.stride = 2, .padding = 1});
       }},
      {"max_pool2d", {{2, 4, 5, 2}}, {{0, 4, 5, 2}}, [](Vars x) { return max_pool2d(x[0], 2); }},
      {"mean_pool2d",
       {{2, 4, 5, 2}},
       {{0, 4, 5, 2}},
       [](Vars x) {
         return mean_pool2d(x[0], {2, 3}, {.padding = 1});
       }},
      {"linear", {{2, 3, 4}, {5, 4}}, {{2, 0, 4}, {5, 4}}, [](Vars x) { return linear(x[0], x[1]); }},
      {"linear", {{3, 4}, {5, 4}, {5}}, {{0, 4}, {5, 4}, {5}}, [](Vars x) { return linear(x[0], x[1], x[2]); }},
  };
}

Cases shape_cases() {
  return {
      {"reshape",
       {{2, 3, 4}},
       {{2, 0, 4}},
       [](Vars x) {
         return reshape(x[0], Shape{4, x[0].size(1), 2});
       }},
      {"transpose", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return transpose(x[0]); }},
      {"transpose", {{2, 3, 4}}, {{0, 3, 4}}, [](Vars x) { return transpose(x[0], 0, 2); }},
      {"permute",
       {{2, 3, 4}},
       {{2, 0, 4}},
       [](Vars x) {
         return permute(x[0], {1, -1, 0});
       }},
      {"slice", {{2, 5, 4}}, {{0, 5, 4}}, [](Vars x) { return slice(x[0], 1, 1, 4); }},
      {"slice", {{2, 5, 4}}, {{2, 5, 0}}, [](Vars x) { return slice(x[0], 1, 2, 2); }},
      {"slice", {{2, 5, 4}}, {{0, 5, 4}}, [](Vars x) { return slice(x[0], 1, 0, 5, 3); }},
      {"slice", {{2, 5, 4}}, {{2, 5, 0}}, [](Vars x) { return slice(x[0], 1, -1, -5, -2); }},
      {"select", {{2, 5, 4}}, {{2, 5, 0}}, [](Vars x) { return select(x[0], 1, -2); }},
      {"select", {{2, 3}}, {{2, 0}}, [](Vars x) { return x[0][1]; }},
      {"split",
       {{2, 5, 4}},
       {{0, 5, 4}},
       [](Vars x) {
         const auto parts = split(x[0], 1, {2, 1, 2});
         return parts[2] * parts[1];
       }},
      {"chunk",
       {{2, 3, 4}},
       {{2, 0, 4}},
       [](Vars x) {
         const auto halves = chunk(x[0], -1, 2);
         return halves[0] * halves[1];
       }},
      {"unbind",
       {{2, 3, 4}},
       {{2, 3, 0}},
       [](Vars x) {
         const auto parts = unbind(x[0], 1);
         return parts[0] * parts[2];
       }},
      {"flip",
       {{2, 3, 4}},
       {{2, 0, 4}},
       [](Vars x) {
         return flip(x[0], {0, -1});
       }},
      {"roll", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return roll(x[0], 1, -4); }},
      {"pad", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return pad(x[0], 1, 2, 1, 0.5); }},
      {"repeat",
       {{2, 3, 4}},
       {{2, 0, 4}},
       [](Vars x) {
         return repeat(x[0], {2, 1, 3});
       }},
      {"tril", {{2, 3, 4}}, {{2, 0, 4}}, [](Vars x) { return tril(x[0], 1); }},
      {"triu", {{2, 3, 4}}, {{2, 3, 0}}, [](Vars x) { return triu(x[0], -1); }},
      {"concat",
       {{2, 3, 4}, {2, 1, 4}},
       {{2, 0, 4}, {2, 1, 4}},
       [](Vars x) {
         return concat({x[0], x[1]}, 1);
       }},
      {"stack",
       {{2, 3}, {2, 3}},
       {{2, 0}, {2, 0}},
       [](Vars x) {
         return stack({x[0], x[1]}, -1);
       }},
      {"broadcast_to",
       {{2, 1, 3}},
       {{0, 1, 3}},
       [](Vars x) {
         return broadcast_to(x[0], {4, x[0].size(0), 5, 3});
       }},
      {"expand_dims", {{2, 3}}, {{2, 0}}, [](Vars x) { return expand_dims(x[0], 1); }},
      {"squeeze", {{2, 1, 3}}, {{0, 1, 3}}, [](Vars x) { return squeeze(x[0], 1); }},
  };
}

Cases indexing_cases() {
  const Tensor ids = Tensor::of<std::int32_t>({2, 3}, {3, 0, 1, 1, 3, 1});
  const Tensor list = Tensor::of<std::int32_t>({3}, {3, -4, 1});
  const Tensor each = Tensor::of<std::int32_t>({2, 2, 1}, {1, -3, 2, -1}), none = zeros({2, 2, 0}, DType::i32);
  const auto ids_for = [=](Vars x) { return x[0].size(2) == 0 ? none : each; };
  return {
      {"embedding", {{4, 3}}, {{4, 0}}, [=](Vars x) { return embedding(x[0], ids); }},
      {"index_select", {{2, 4, 3}}, {{2, 4, 0}}, [=](Vars x) { return index_select(x[0], 1, list); }},
      {"gather", {{2, 3, 1}}, {{2, 3, 0}}, [=](Vars x) { return gather(x[0], 1, ids_for(x)); }},
      {"scatter_add",
       {{2, 3, 1}, {2, 2, 1}},
       {{2, 3, 0}, {2, 2, 0}},
       [=](Vars x) { return scatter_add(x[0], 1, ids_for(x), x[1]); }},
      {"sort", {{2, 3, 4}}, {{2, 3, 0}}, [](Vars x) { return sort(x[0], 1, true).values; }},
      {"topk", {{2, 3, 4}}, {{2, 3, 0}}, [](Vars x) { return topk(x[0], 2, 1).values; }},
      {"dropout",
       {{2, 3, 4}},
       {{2, 0, 4}},
       [](Vars x) {
         Rng rng(1);
         return dropout(x[0], 0.4, rng);
       }},
  };
}

Cases fused_cases() {
  const Tensor targets = Tensor::of<std::int32_t>({2, 3}, {0, 4, 2, -100, 1, 3});
  return {
      {"rms_norm", {{2, 3, 5}, {5}}, {{2, 0, 5}, {5}}, [](Vars x) { return rms_norm(x[0], x[1]); }},
      {"rms_norm", {{2, 3, 5}}, {{2, 3, 0}}, [](Vars x) { return rms_norm(x[0]); }},
      {"layer_norm", {{2, 3, 5}, {5}, {5}}, {{2, 0, 5}, {5}, {5}}, [](Vars x) { return layer_norm(x[0], x[1], x[2]); }},
      {"layer_norm", {{2, 3, 5}}, {{2, 0, 5}}, [](Vars x) { return layer_norm(x[0]); }},
      {"group_norm",
       {{2, 4, 3}, {4}, {4}},
       {{0, 4, 3}, {4}, {4}},
       [](Vars x) { return group_norm(x[0], 2, x[1], x[2], 1e-5, Channels::first); }},
      {"group_norm",
       {{2, 3, 4}, {4}, {4}},
       {{2, 0, 4}, {4}, {4}},
       [](Vars x) { return group_norm(x[0], 2, x[1], x[2]); }},
      {"group_norm", {{2, 3, 4}}, {{0, 3, 4}}, [](Vars x) { return group_norm(x[0], 2); }},
      {"rotary_embedding", {{2, 3, 2, 6}}, {{2, 0, 2, 6}}, [](Vars x) { return rotary_embedding(x[0], 100, 2); }},
      {"rotary_embedding",
       {{2, 3, 2, 6}},
       {{2, 0, 2, 6}},
       [](Vars x) { return rotary_embedding(x[0], 100, 2, RotaryLayout::halves); }},
      {"rotary_embedding",
       {{2, 3, 2, 7}},
       {{2, 0, 2, 7}},
       [](Vars x) {
         return rotary_embedding(x[0], RotaryTurns{{1, 0.3}, RotaryLayout::halves, true, 0.5}, 2);
       }},
      {"mse_loss", {{2, 3}, {2, 3}}, {{2, 0}, {2, 0}}, [](Vars x) { return mse_loss(x[0], x[1]); }},
      {"attention",
       {{2, 5, 2, 3}, {2, 5, 2, 3}, {2, 5, 2, 3}},
       {{2, 0, 2, 3}, {2, 0, 2, 3}, {2, 0, 2, 3}},
       [](Vars x) { return attention(x[0], x[1], x[2]); }},
      {"attention",
       {{2, 5, 4, 3}, {2, 7, 2, 3}, {2, 7, 2, 3}},
       {{2, 5, 4, 3}, {2, 0, 2, 3}, {2, 0, 2, 3}},
       [](Vars x) {
         return attention(x[0], x[1], x[2], {.causal = false, .scale = 0.3, .mask = full({5, 1}, -1, x[0].dtype())});
       }},
      {"attention",
       {{1, 9, 2, 3}, {1, 7, 1, 3}, {1, 7, 1, 3}},
       {{1, 0, 2, 3}, {1, 7, 1, 3}, {1, 7, 1, 3}},
       [](Vars x) {
         Rng rng(3);
         return attention(x[0], x[1], x[2], {.window = 3, .dropout = 0.25, .rng = &rng});
       }},
      {"attention",
       {{2, 5, 4, 3}, {2, 7, 2, 3}, {2, 7, 2, 3}, {4}},
       {{2, 5, 4, 3}, {2, 0, 2, 3}, {2, 0, 2, 3}, {4}},
       [](Vars x) { return attention(x[0], x[1], x[2], {.window = 4, .softcap = 2, .sinks = x[3]}); }},
      {"cross_entropy",
       {{2, 3, 5}},
       {{0, 3, 5}},
       [=](Vars x) { return cross_entropy(x[0], targets.slice(0, 0, x[0].size(0))); }},
      {"cross_entropy",
       {{2, 3, 5}},
       {{0, 3, 5}},
       [=](Vars x) {
         return cross_entropy(x[0], targets.slice(0, 0, x[0].size(0)),
                              {.reduction = Reduction::none,
                               .label_smoothing = 0.1,
                               .class_weights = (arange(5, x[0].dtype()) + 1) / 2});
       }},
      {"cross_entropy",
       {{2, 5}, {2, 5}},
       {{0, 5}, {0, 5}},
       [](Vars x) { return cross_entropy(x[0], x[1], {.label_smoothing = 0.1}); }},
      {"binary_cross_entropy_with_logits",
       {{2, 3}, {2, 3}},
       {{2, 0}, {2, 0}},
       [](Vars x) { return binary_cross_entropy_with_logits(x[0], x[1]); }},
      {"kl_divergence",
       {{2, 3}, {2, 3}},
       {{2, 0}, {2, 0}},
       [](Vars x) { return kl_divergence(x[0], x[1]); },
       Domain::positive},
  };
}

Tensor random_values(const Shape& shape, Domain domain, Rng& rng) {
  Tensor t = rand(shape, rng, DType::f64);
  double* x = t.mutable_data<double>();
  const double low = domain == Domain::positive ? 0 : -1;
  std::transform(x, x + t.numel(), x, [&](double u) { return low + (1 - low) * u; });
  std::transform(x, x + t.numel(), x, [](double v) { return v + std::copysign(0.25, v); });
  return t;
}

/// From a grid that has the kinks of the cases on it, or anything of any size.
Tensor anywhere(const Shape& shape, Domain domain, bool on_grid, Rng& rng) {
  constexpr std::array kGrid{0.0, 0.1, -0.1, 0.2, -0.2, 1.0, -1.0, -2.0};
  const Tensor places = rand(shape, rng, DType::f64), sizes = rand({1}, rng, DType::f64);
  const double scale = std::pow(10, 2 * sizes.data<double>()[0] - 1);
  Tensor t(shape, DType::f64);
  std::transform(places.data<double>(), places.data<double>() + t.numel(), t.mutable_data<double>(), [&](double u) {
    double v = on_grid ? kGrid[static_cast<std::size_t>(u * kGrid.size())] : scale * (2 * u - 1);
    if (domain == Domain::positive) v = std::abs(v);
    return v == 0 && domain != Domain::away_from_zero ? 0.5 : v;
  });
  return t;
}

Tensor transposed(const Tensor& x) {
  std::vector<int> reverse;
  for (int axis = x.rank() - 1; axis >= 0; --axis) reverse.push_back(axis);
  return x.permute(reverse).clone().permute(reverse);
}

Tensor sliced(const Tensor& x) {
  Shape shape = x.shape().inserted(x.rank(), 2);
  for (int axis = 0; axis < x.rank(); ++axis) shape = shape.with(axis, x.size(axis) + 2);
  Tensor large = full(shape, std::numeric_limits<double>::quiet_NaN(), DType::f64);
  double* out = large.mutable_data<double>();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    std::int64_t offset = 1, rest = i;
    for (int axis = x.rank() - 1; axis >= 0; rest /= x.size(axis), --axis)
      offset += (rest % x.size(axis) + 1) * large.strides()[static_cast<std::size_t>(axis)];
    out[offset] = x.data<double>()[i];
  }
  Tensor view = large.select(-1, 1);
  for (int axis = 0; axis < x.rank(); ++axis) view = view.slice(axis, 1, x.size(axis) + 1);
  return view;
}

Tensor laid_out(const Tensor& x, Layout layout, int broadcast_axis) {
  switch (layout) {
    case Layout::transposed: return transposed(x);
    case Layout::sliced: return sliced(x);
    case Layout::broadcast:
      return broadcast_axis < x.rank() ? x.slice(broadcast_axis, 0, 1).broadcast_to(x.shape()) : x;
    default: return x;
  }
}

}  // namespace

std::string_view name(Layout layout) {
  switch (layout) {
    case Layout::contiguous: return "contiguous";
    case Layout::transposed: return "transposed";
    case Layout::sliced: return "sliced";
    case Layout::broadcast: return "broadcast";
    case Layout::zero_size: return "zero size";
  }
  return "unknown";
}

std::vector<OpCase> op_registry() {
  Cases all;
  for (const auto& group :
       {arithmetic_cases, elementwise_cases, reduction_cases, product_cases, shape_cases, indexing_cases, fused_cases})
    std::ranges::move(group(), std::back_inserter(all));
  return all;
}

std::vector<Tensor> make_inputs(const OpCase& op_case, Layout layout) {
  Rng rng(7);
  std::vector<Tensor> inputs;
  for (const Shape& shape : layout == Layout::zero_size ? op_case.empty_shapes : op_case.shapes)
    inputs.push_back(laid_out(random_values(shape, op_case.domain, rng), layout, op_case.broadcast_axis));
  return inputs;
}

std::vector<Tensor> make_random_inputs(const OpCase& op_case, std::uint64_t point) {
  Rng rng(point);
  const Layout layout = kLayouts[point / 2 % (kLayouts.size() - 1)];
  std::vector<Tensor> inputs;
  for (const Shape& shape : op_case.shapes)
    inputs.push_back(laid_out(anywhere(shape, op_case.domain, point % 2 == 1, rng), layout, op_case.broadcast_axis));
  return inputs;
}

}  // namespace braid
