#include <tests/random_programs/program.h>

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <braid/autograd/ops/concat.h>
#include <braid/autograd/ops/reshape.h>

namespace braid::programs {

Setting integer(std::int64_t value) { return {std::to_string(value), static_cast<double>(value)}; }
Setting real(double value) { return {fmt::format("{}", value), value}; }
Setting truth(bool value) { return {value ? "true" : "false", value ? 1.0 : 0.0}; }

Setting list(std::vector<std::int64_t> values) {
  return {.code = fmt::format("{{{}}}", fmt::join(values, ", ")), .list = std::move(values)};
}

Setting ids(const Tensor& values) {
  return {.code = fmt::format("Tensor::of<std::int32_t>({{{}}}, {{{}}})", fmt::join(values.shape(), ", "),
                              fmt::join(values.to_vector<std::int32_t>(), ", ")),
          .ids = values};
}

namespace {

Tensor reversed(const Tensor& x) {
  std::vector<int> axes;
  for (int axis = x.rank() - 1; axis >= 0; --axis) axes.push_back(axis);
  return x.permute(axes);
}

/// A larger tensor, NaN but where the sliced view is.
Tensor padded(const Tensor& x) {
  Tensor base = full(x.shape().with(0, x.size(0) + 1).inserted(x.rank(), 2), std::numeric_limits<double>::quiet_NaN(),
                     DType::f64);
  const std::int64_t row = x.size(0) == 0 ? 0 : x.numel() / x.size(0);
  double* out = base.mutable_data<double>();
  for (std::int64_t i = 0; i < x.numel(); ++i) out[2 * (row + i) + 1] = x.data<double>()[i];
  return base;
}

}  // namespace

Tensor base_of(const Tensor& x, Layout layout) {
  switch (layout) {
    case Layout::contiguous: return x;
    case Layout::transposed: return reversed(x).clone();
    case Layout::sliced: return padded(x);
    case Layout::broadcast: return x.slice(0, 0, 1).clone();
  }
  return {};
}

Tensor laid_out(const Tensor& x, Layout layout, DType dtype) {
  const Tensor base = base_of(x, layout).to(dtype);
  switch (layout) {
    case Layout::contiguous: return base;
    case Layout::transposed: return reversed(base);
    case Layout::sliced: return base.select(-1, 1).slice(0, 1, base.size(0));
    case Layout::broadcast: return base.broadcast_to(x.shape());
  }
  return {};
}

std::vector<Tensor> inputs_of(const Program& program, DType dtype) {
  std::vector<Tensor> inputs;
  for (const Value& value : program)
    if (value.op == nullptr) inputs.push_back(laid_out(value.input, value.layout, dtype));
  return inputs;
}

std::vector<int> results_of(const Program& program) {
  std::vector<bool> used(program.size());
  for (const Value& value : program)
    for (const int operand : value.operands) used[static_cast<std::size_t>(operand)] = true;
  std::vector<int> results;
  for (std::size_t i = 0; i < program.size(); ++i)
    if (!used[i]) results.push_back(static_cast<int>(i));
  return results;
}

std::vector<Var> values_of(const Program& program, std::span<const Var> inputs) {
  std::vector<Var> values, operands;
  auto input = inputs.begin();
  for (const Value& value : program) {
    operands.clear();
    for (const int operand : value.operands) operands.push_back(values[static_cast<std::size_t>(operand)]);
    values.push_back(value.op == nullptr ? *input++ : value.op->apply(operands, value.settings));
  }
  return values;
}

Var result_of(const Program& program, std::span<const Var> inputs) {
  const std::vector<Var> values = values_of(program, inputs);
  std::vector<Var> results;
  for (const int i : results_of(program)) results.push_back(values[static_cast<std::size_t>(i)]);
  if (results.size() == 1) return results.front();
  for (Var& result : results) result = reshape(result, Shape{result.value().numel()});
  return concat(results, 0);
}

bool is_used(const Program& program, int value) {
  return std::ranges::any_of(program,
                             [&](const Value& other) { return std::ranges::count(other.operands, value) > 0; });
}

Program without(const Program& program, int value) {
  Program smaller = program;
  smaller.erase(smaller.begin() + value);
  for (Value& other : smaller)
    for (int& operand : other.operands) operand -= operand > value ? 1 : 0;
  return smaller;
}

Program without_unused_inputs(Program program) {
  for (int i = static_cast<int>(program.size()) - 1; i >= 0; --i)
    if (program[static_cast<std::size_t>(i)].op == nullptr && !is_used(program, i)) program = without(program, i);
  return program;
}

}  // namespace braid::programs
