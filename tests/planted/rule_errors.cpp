#include <braid/autograd/ops.h>
#include <tests/planted/errors.h>
#include <tests/planted/rule_mutations.h>

namespace braid::planted {
namespace {

using namespace rules;
using Errors = std::vector<Error>;

Error rule_error(std::string op, std::string words, WrongRule wrong) {
  return {std::move(op), std::move(words), {}, std::move(wrong)};
}

/// dx = dy f(x, y), for an op with one input.
WrongRule product(std::function<Var(const Var& x, const Var& y)> f) {
  return changed(0, [=](const Var&, const Applied& op) { return op.dy() * f(op.x(), op.y()); });
}

/// dx = f(dy), of the shape of x, or the right one where that has another.
WrongRule of_dy(std::function<Var(const Var& dy)> f) {
  return changed(0, [=](const Var& dx, const Applied& op) {
    const Var wrong = f(op.dy());
    return wrong.shape() == dx.shape() ? wrong : dx;
  });
}

Errors arithmetic_errors() {
  return {
      rule_error("add", "b's cotangent is not summed over the axis that b lacks", first_only(1, 1)),
      rule_error("sub", "sign of b's cotangent", scaled(1, -1)),
      rule_error("mul", "takes the factors for constants", of_constant_inputs()),
      rule_error("mul", "b's cotangent lacks all but the first row", first_only(1, 1)),
      rule_error("div", "sign of b's cotangent", scaled(1, -1)),
      rule_error("div", "takes a / b for a constant", of_constant_outputs()),
      rule_error("neg", "sign", scaled(0, -1)),
      rule_error("where", "sign of b's cotangent", scaled(1, -1)),
      rule_error("maximum", "takes dy for a constant", of_constant_dys()),
      rule_error("minimum", "b's cotangent is halved", scaled(1, 0.5)),
  };
}

Errors elementwise_errors() {
  return {
      rule_error("exp", "takes y for a constant", of_constant_outputs()),
      rule_error("expm1", "y in place of y + 1", product([](const Var&, const Var& y) { return y; })),
      rule_error("log", "takes x for a constant", of_constant_inputs()),
      rule_error("log1p", "1 / x in place of 1 / (1 + x)", product([](const Var& x, const Var&) { return 1 / x; })),
      rule_error("sqrt", "takes y for a constant", of_constant_outputs()),
      rule_error("rsqrt", "y^2 in place of y^3", product([](const Var&, const Var& y) { return -0.5 * y * y; })),
      rule_error("pow", "takes x for a constant", of_constant_inputs()),
      rule_error("sin", "sign", scaled(0, -1)),
      rule_error("cos", "takes x for a constant", of_constant_inputs()),
      rule_error("tanh", "1 - y in place of 1 - y^2", product([](const Var&, const Var& y) { return 1 - y; })),
      rule_error("sigmoid", "factor 1 - y forgotten", product([](const Var&, const Var& y) { return y; })),
      rule_error("sigmoid", "takes y for a constant", of_constant_outputs()),
      rule_error("silu", "term x s (1 - s) forgotten", product([](const Var& x, const Var&) { return sigmoid(x); })),
      rule_error("gelu", "derivative is 1 % too large", scaled(0, 1.01)),
      rule_error("gelu_erf", "takes x for a constant", of_constant_inputs()),
      rule_error("softplus", "takes x for a constant", of_constant_inputs()),
      rule_error("relu", "dy passes everywhere", of_dy([](const Var& dy) { return dy; })),
      rule_error("abs", "sign of x forgotten", of_dy([](const Var& dy) { return dy; })),
      rule_error("clamp", "dy passes everywhere", of_dy([](const Var& dy) { return dy; })),
      rule_error("dropout", "mask forgotten", of_dy([](const Var& dy) { return dy; })),
  };
}

Errors reduction_and_product_errors() {
  return {
      rule_error("sum", "dy is divided by the number of terms", scaled(0, 0.25)),
      rule_error("sum", "takes dy for a constant", of_constant_dys()),
      rule_error("mean", "dy is not divided by the number of terms", scaled(0, 8)),
      rule_error("max", "share moved on by one", shifted(0, -1)),
      rule_error("min", "takes dy for a constant", of_constant_dys()),
      rule_error("cumsum", "sums from the front again", of_dy([](const Var& dy) { return cumsum(dy, 1); })),
      rule_error("sort", "dy is not moved back", of_dy([](const Var& dy) { return dy; })),
      rule_error("topk", "dy moved back to the next position", shifted(0, 1)),
      rule_error("matmul", "takes both matrices for constants", of_constant_inputs()),
      rule_error("matmul", "a's cotangent moved on by one", shifted(0, -1)),
  };
}

Errors shape_errors() {
  return {
      rule_error("transpose", "dy is moved on by one", shifted(0, -1)),
      rule_error("permute", "sign", scaled(0, -1)),
      rule_error("reshape", "dy is moved on by one", shifted(0, -1)),
      rule_error("broadcast_to", "dy is not summed over a new axis", first_only(0, 0)),
      rule_error("expand_dims", "takes dy for a constant", of_constant_dys()),
      rule_error("squeeze", "takes dy for a constant", of_constant_dys()),
      rule_error("concat", "sign of the second part's cotangent", scaled(1, -1)),
      rule_error("stack", "cotangents of the parts exchanged", swapped(0, 1)),
      rule_error("slice", "dy put in one position further", shifted(0, -1)),
      rule_error("select", "dy put in one position further", shifted(0, 0)),
      rule_error("split", "dy put in one position further", shifted(0, -1)),
      rule_error("chunk", "takes dy for a constant", of_constant_dys()),
      rule_error("flip", "dy is not flipped back", of_dy([](const Var& dy) { return dy; })),
      rule_error("roll", "dy is not rolled back", of_dy([](const Var& dy) { return dy; })),
      rule_error("pad", "dy taken from one position further", shifted(0, 1)),
      rule_error("repeat", "dy of the copies is averaged", scaled(0, 0.5)),
  };
}

Errors indexing_errors() {
  return {
      rule_error("embedding", "ids are off by one", shifted(0, 0)),
      rule_error("gather", "ids are off by one", shifted(0, 1)),
      rule_error("index_select", "ids are off by one", shifted(0, 1)),
      rule_error("scatter_add", "src's cotangent is moved on by one", shifted(1, 1)),
  };
}

}  // namespace

std::vector<Error> rule_errors() {
  Errors all;
  for (const Errors& some :
       {arithmetic_errors(), elementwise_errors(), reduction_and_product_errors(), shape_errors(), indexing_errors()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace braid::planted
