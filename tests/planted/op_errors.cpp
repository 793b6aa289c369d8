#include <cmath>

#include <braid/autograd/ops.h>
#include <tests/planted/errors.h>
#include <tests/planted/mutations.h>
#include <tests/planted/setting.h>

namespace braid::planted {
namespace {

using Vars = std::span<const Var>;
using Errors = std::vector<Error>;

Var mean_square(const Var& x) { return mean(x * x, -1, true); }

Errors elementwise_errors() {
  return {
      {"add", "b's cotangent is not summed over the axis that b lacks", first_only(1, 0)},
      {"sub", "sign of b's cotangent", scaled(1, -1)},
      {"mul", "each factor's cotangent is dy times itself",
       vjp_of([](Vars x) { return 0.5 * (x[0] * x[0] + x[1] * x[1]); })},
      {"mul", "b's cotangent lacks the last token", without_last(1, 1)},
      {"div", "b's cotangent lacks a factor 1/b",
       changed(1, [](const Tensor& db, const Call& c) { return Var(db) * c.inputs[1]; })},
      {"exp", "x in place of exp(x)", vjp_of([](Vars x) { return 0.5 * x[0] * x[0]; })},
      {"tanh", "1 - y in place of 1 - y^2",
       changed(0, [](const Tensor&, const Call& c) { return Var(c.dys[0]) * (1 - Var(c.outputs[0])); })},
      {"sigmoid", "factor 1 - y forgotten",
       changed(0, [](const Tensor&, const Call& c) { return Var(c.dys[0]) * c.outputs[0]; })},
      {"gelu", "derivative of the form with erf", vjp_of([](Vars x) { return gelu_erf(x[0]); })},
      {"silu", "term x s (1 - s) forgotten", vjp_of([](Vars x) { return x[0] * detach(sigmoid(x[0])); })},
  };
}

Errors reduction_and_shape_errors() {
  return {
      {"sum", "dy is divided by the number of terms", scaled(0, 1.0 / kChannels)},
      {"softmax", "term -sum(dy y) forgotten",
       vjp_of([](Vars x) { return exp(x[0]) / detach(sum(exp(x[0]), -1, true)); })},
      {"logsumexp", "probabilities moved on by one", shifted(0, -1)},
      {"matmul", "dy b in place of dy b^T",
       changed(0, [](const Tensor&, const Call& c) { return matmul(c.dys[0], c.inputs[1]); })},
      {"matmul", "b's cotangent from the first matrix of the batch", first_only(1, 0)},
      {"einsum", "second operand's cotangent transposed", transposed(1)},
      {"transpose", "dy is not transposed back", transposed(0)},
      {"concat", "cotangents of the parts exchanged", swapped(0, 1)},
      {"slice", "dy put in one position further", shifted(0, -1)},
      {"reshape", "rows and columns of dy exchanged",
       changed(0, [](const Tensor& dx, const Call& c) { return reshape(transpose(c.dys[0], -2, -1), dx.shape()); })},
  };
}

/// The rows of dy where the last one of equal ids counts alone.
Var last_of_equal_ids(const Tensor& dweight, const Call& call) {
  Tensor overwritten = zeros(dweight.shape(), dweight.dtype());
  const Tensor rows = call.dys[0].contiguous().reshape({-1, dweight.size(1)});
  const std::vector<double> ids = tokens().to(DType::f64).to_vector<double>();
  for (std::size_t i = 0; i < ids.size(); ++i)
    for (std::int64_t c = 0; c < rows.size(1); ++c)
      overwritten.mutable_data<double>()[static_cast<std::int64_t>(ids[i]) * rows.size(1) + c] =
          rows.data<double>()[static_cast<std::int64_t>(i) * rows.size(1) + c];
  return overwritten;
}

Errors lookup_and_linear_errors() {
  return {
      {"embedding", "of equal ids the last one counts alone", changed(0, last_of_equal_ids)},
      {"embedding", "ids are off by one", shifted(0, 0)},
      {"linear", "weight's cotangent transposed", transposed(1)},
      {"linear", "dy W^T in place of dy W",
       changed(0,
               [](const Tensor& dx, const Call& c) -> Var {
                 const Tensor& weight = c.inputs[1];
                 return weight.size(0) == weight.size(1) ? matmul(c.dys[0], weight.transpose()) : Var(dx);
               })},
      {"linear", "bias's cotangent from the first token alone",
       changed(2,
               [](const Tensor&, const Call& c) {
                 return reshape(slice(reshape(c.dys[0], {-1, c.dys[0].size(-1)}), 0, 0, 1), {-1});
               })},
      {"linear", "weight's cotangent lacks the last token", without_last(1, 1)},
      {"linear", "weight's cotangent is that for a dy of ones", for_ones(1)},
  };
}

Errors norm_errors() {
  const auto norm = [](Vars x, const Var& mean, const Var& variance) {
    return (x[0] - mean) / sqrt(variance + kEps) * x[1] + x[2];
  };
  const auto variance = [](const Var& x) { return mean_square(x - mean(x, -1, true)); };
  return {
      {"rms_norm", "projection term forgotten",
       vjp_of([](Vars x) { return x[0] / detach(sqrt(mean_square(x[0]) + kEps)) * x[1]; })},
      {"rms_norm", "weight's cotangent takes x before it is normalized",
       changed(1,
               [](const Tensor& dw, const Call& c) {
                 return reduce_sum((Var(c.dys[0]) * c.inputs[0]).value().reshape({-1, dw.numel()}), {0});
               })},
      {"rms_norm", "weight's cotangent is 1e-3 too large", scaled(1, 1.001)},
      {"layer_norm", "mean term forgotten",
       vjp_of([=](Vars x) { return norm(x, detach(mean(x[0], -1, true)), variance(x[0])); })},
      {"layer_norm", "variance term forgotten",
       vjp_of([=](Vars x) { return norm(x, mean(x[0], -1, true), detach(variance(x[0]))); })},
      {"layer_norm", "cotangents of weight and bias exchanged", swapped(1, 2)},
  };
}

/// softmax(q k^T / sqrt(D)) v, where a query sees keys up to `ahead` positions after its own.
Var attention(Vars x, std::int64_t ahead, const std::function<Var(const Var& scores)>& weights) {
  const auto heads_first = [](const Var& v) { return transpose(v, 1, 2); };
  const std::int64_t length = x[0].size(1);
  Tensor hidden = zeros({length, length}, DType::f64);
  for (std::int64_t t = 0; t < length; ++t)
    for (std::int64_t s = t + 1 + ahead; s < length; ++s) hidden.mutable_data<double>()[t * length + s] = -1e3;
  const Var products = matmul(heads_first(x[0]), transpose(heads_first(x[1]), -2, -1));
  const Var scores = products / std::sqrt(static_cast<double>(x[0].size(-1))) + hidden;
  return heads_first(matmul(weights(scores), heads_first(x[2])));
}

Errors attention_errors() {
  const auto probabilities = [](const Var& scores) { return softmax(scores, -1); };
  const auto without_sum = [](const Var& s) { return exp(s) / detach(sum(exp(s), -1, true)); };
  return {
      {"attention", "mask off by one: the next token is seen",
       vjp_of([=](Vars x) { return attention(x, 1, probabilities); })},
      {"attention", "q's cotangent lacks 1 / sqrt(D)", scaled(0, 2)},
      {"attention", "cotangents of q and k exchanged", swapped(0, 1)},
      {"attention", "term -sum(dy y) of the softmax forgotten",
       vjp_of([=](Vars x) { return attention(x, 0, without_sum); })},
      {"rotary_embedding", "dy turned on, not back",
       changed(0, [](const Tensor&, const Call& c) { return rotary_embedding(c.dys[0]); })},
  };
}

Errors cross_entropy_errors() {
  return {
      {"cross_entropy", "1 / N forgotten", scaled(0, 8)},
      {"cross_entropy", "target's -1 forgotten", vjp_of([](Vars x) { return mean(logsumexp(x[0], -1)); })},
      {"cross_entropy", "last token left out",
       changed(0,
               [](const Tensor& dx, const Call&) {
                 return concat({dx.slice(1, 0, 3), zeros(dx.slice(1, 3, 4).shape(), dx.dtype())}, 1);
               })},
  };
}

}  // namespace

std::vector<Error> op_errors() {
  Errors all;
  for (const Errors& some : {elementwise_errors(), reduction_and_shape_errors(), lookup_and_linear_errors(),
                             norm_errors(), attention_errors(), cross_entropy_errors()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace braid::planted
