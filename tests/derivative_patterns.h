#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <braid/autograd/derivatives.h>
#include <braid/autograd/detail/tape_state.h>
#include <braid/autograd/verify/gradcheck.h>
#include <braid/core/random.h>

// Ways to ask a function for derivatives that gradcheck() does not try: some inputs constant, some cotangents
// undefined, whole Jacobians.

namespace braid::patterns {

/// Expects that they agree to `tolerance` relative to the largest number, at least 1e-3; an undefined Tensor is zero.
inline void expect_close(const Tensor& a, const Tensor& b, double tolerance = 1e-12) {
  if (!a.defined() && !b.defined()) return;
  const Tensor zero = zeros((a.defined() ? a : b).shape(), DType::f64);
  const std::vector<double> x = (a.defined() ? a : zero).to_vector<double>(),
                            y = (b.defined() ? b : zero).to_vector<double>();
  ASSERT_EQ(x.size(), y.size());
  double largest = 1e-3, worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    largest = std::max(largest, std::abs(y[i]));
    worst = std::max(worst, std::abs(x[i] - y[i]));
    EXPECT_TRUE(std::isfinite(x[i]) && std::isfinite(y[i]));
  }
  EXPECT_LE(worst, tolerance * largest);
}

/// The gradients of <dy, f(inputs)> for the inputs whose bit in `variables` is set; the others are constants.
inline std::vector<Tensor> by_vjps(const GradcheckFunction& f, const std::vector<Tensor>& inputs, const Tensor& dy,
                                   unsigned variables) {
  Tape tape;
  std::vector<Var> x(inputs.begin(), inputs.end());
  for (std::size_t i = 0; i < x.size(); ++i)
    if ((variables >> i & 1) != 0) x[i] = tape.watch(inputs[i]);
  const Var y = f(x);
  tape.backward(y, dy);
  std::vector<Tensor> gradients;
  for (const Var& v : x) gradients.push_back(v.requires_grad() ? tape.gradient(v) : Tensor());
  return gradients;
}
inline std::vector<Tensor> by_rules(const GradcheckFunction& f, const std::vector<Tensor>& inputs, const Tensor& dy,
                                    unsigned variables) {
  detail::Differentiation tape("by_rules");
  std::vector<Var> x(inputs.begin(), inputs.end()), watched;
  for (std::size_t i = 0; i < x.size(); ++i)
    if ((variables >> i & 1) != 0) watched.push_back(x[i] = tape.variable(x[i]));
  const Var y = f(x), u = dy;
  std::vector<Tensor> gradients(x.size());
  const std::vector<Var> found = tape.gradients(std::span(&y, 1), std::span(&u, 1), watched);
  for (std::size_t i = 0, k = 0; i < x.size(); ++i)
    if (x[i].requires_grad()) gradients[i] = found[k++].value();
  return gradients;
}

/// Every combination of constants and variables gives the same gradients, by vjps and by rules; of more than five
/// inputs only one is constant, or only one is not.
inline void expect_gradients_of_every_subset(const GradcheckFunction& f, const std::vector<Tensor>& inputs) {
  Rng rng(3);
  const Tensor dy = randn(f(std::vector<Var>(inputs.begin(), inputs.end())).shape(), rng, DType::f64);
  const unsigned all = (1u << inputs.size()) - 1;
  const std::vector<Tensor> expected = by_vjps(f, inputs, dy, all);
  for (unsigned variables = 1; variables <= all; ++variables) {
    if (inputs.size() > 5 && !std::has_single_bit(variables) && !std::has_single_bit(all & ~variables)) continue;
    SCOPED_TRACE(variables);
    for (const auto gradients : {by_vjps, by_rules}) {
      const std::vector<Tensor> found = gradients(f, inputs, dy, variables);
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if ((variables >> i & 1) != 0) expect_close(found[i], expected[i]);
    }
  }
}

/// Zeros but for a one.
inline Tensor unit(const Shape& shape, std::int64_t element) {
  Tensor t = zeros(shape, DType::f64);
  t.mutable_data<double>()[element] = 1;
  return t;
}

/// The Jacobian for every input by rows, with vjps, is that by columns, with rules, and that of jacobian().
inline void expect_one_jacobian(const GradcheckFunction& f, const std::vector<Tensor>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    SCOPED_TRACE(i);
    const auto of_input = [&](const Var& x) {
      std::vector<Var> all(inputs.begin(), inputs.end());
      all[i] = x;
      return f(all);
    };
    const Shape y = of_input(inputs[i]).shape(), x = inputs[i].shape();
    Tensor rows({y.numel(), x.numel()}, DType::f64), columns({x.numel(), y.numel()}, DType::f64);
    const auto put = [](const Tensor& line, Tensor& into, std::int64_t position) {
      const std::vector<double> values = line.to_vector<double>();
      std::ranges::copy(values, into.mutable_data<double>() + position * line.numel());
    };
    for (std::int64_t k = 0; k < y.numel(); ++k) put(by_vjps(f, inputs, unit(y, k), 1u << i)[i], rows, k);
    for (std::int64_t k = 0; k < x.numel(); ++k) put(jvp(of_input, inputs[i], unit(x, k)).second.value(), columns, k);
    expect_close(columns.transpose(), rows);
    expect_close(jacobian(of_input, inputs[i]).reshape(rows.shape()), rows);
  }
}

/// What an op's vjp makes of cotangents, or its rule if it has one.
inline std::vector<Tensor> cotangents_of(const detail::Node& node, std::vector<Tensor> dys) {
  std::vector<bool> needed;
  for (const detail::Input& input : node.inputs) needed.push_back(input.id.has_value());
  const Needs needs(std::move(needed));
  if (!node.retained || !node.retained->rule) return node.vjp(dys, needs);
  const auto constants = [](const std::vector<Tensor>& values) {
    return std::vector<Var>(values.begin(), values.end());
  };
  std::vector<Tensor> dxs;
  for (const Var& dx : node.retained->rule(
           {constants(node.retained->inputs), constants(node.retained->outputs), constants(dys), needs}))
    dxs.push_back(dx.value());
  return dxs;
}

/// Undefined cotangents are zeros, for every op that f records and every subset of its outputs.
inline void expect_undefined_cotangents_to_be_zeros(const GradcheckFunction& f, const std::vector<Tensor>& inputs) {
  Tape tape;
  std::vector<Var> x;
  for (const Tensor& input : inputs) x.push_back(tape.watch(input));
  f(x);
  Rng rng(5);
  const detail::TapeState& state = *detail::TapeState::of(x.front());
  for (const detail::Node& node : state.nodes) {
    const std::size_t outputs = node.outputs;
    SCOPED_TRACE(node.op);
    for (unsigned defined = 1; defined + 1 < 1u << outputs; ++defined) {
      std::vector<Tensor> undefined(outputs), zero;
      for (std::size_t i = 0; i < outputs; ++i) {
        const Shape& shape = state.values[node.first_output + i].shape;
        if ((defined >> i & 1) != 0) undefined[i] = randn(shape, rng, DType::f64);
        zero.push_back(undefined[i].defined() ? undefined[i].clone() : zeros(shape, DType::f64));
      }
      const std::vector<Tensor> found = cotangents_of(node, undefined), expected = cotangents_of(node, zero);
      for (std::size_t i = 0; i < found.size(); ++i) expect_close(found[i], expected[i]);
    }
  }
}

}  // namespace braid::patterns
