#include <tests/random_programs/print.h>

#include <cctype>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace braid::programs {
namespace {

/// The pattern of an op with names for its operands: see Op::code.
std::string call_text(const Value& call, const std::vector<std::string>& names) {
  std::string pattern = call.op->code, text;
  if (pattern.empty()) {
    pattern = call.op->name + "($*";
    for (std::size_t i = 0; i < call.settings.size(); ++i) pattern += fmt::format(", #{}", i);
    pattern += ")";
  }
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char sign = pattern[i];
    if (sign != '$' && sign != '#') {
      text += sign;
      continue;
    }
    std::size_t number = 0;
    if (std::isdigit(static_cast<unsigned char>(pattern[i + 1])) != 0)
      number = static_cast<std::size_t>(pattern[++i] - '0');
    const bool rest = i + 1 < pattern.size() && pattern[i + 1] == '*';
    if (rest) ++i;
    if (sign == '#')
      text += call.settings[number].code;
    else
      text += rest
                  ? fmt::format("{}", fmt::join(names.begin() + static_cast<std::ptrdiff_t>(number), names.end(), ", "))
                  : names[number];
  }
  return text;
}

std::string number_text(double value) { return std::isnan(value) ? "NAN" : fmt::format("{}", value); }

std::string input_text(const Value& input) {
  const Tensor base = base_of(input.input, input.layout);
  std::vector<std::string> numbers, reversed;
  for (const double value : base.to_vector<double>()) numbers.push_back(number_text(value));
  for (int axis = base.rank() - 1; axis >= 0; --axis) reversed.push_back(std::to_string(axis));
  const std::string shape = fmt::format("{{{}}}", fmt::join(base.shape(), ", "));
  const std::string text =
      numbers.empty() ? fmt::format("zeros({}, dtype)", shape)
                      : fmt::format("Tensor::of<double>({}, {{{}}}).to(dtype)", shape, fmt::join(numbers, ", "));
  switch (input.layout) {
    case Layout::contiguous: return text;
    case Layout::transposed: return fmt::format("{}.permute({{{}}})", text, fmt::join(reversed, ", "));
    case Layout::sliced: return fmt::format("{}.select(-1, 1).slice(0, 1, {})", text, base.size(0));
    case Layout::broadcast: return fmt::format("{}.broadcast_to({{{}}})", text, fmt::join(input.input.shape(), ", "));
  }
  return text;
}

std::string assertion_text(const Failure& failure) {
  const std::string both_dtypes =
      "  const auto single = value_and_gradients(f, inputs(DType::f32)), exact = value_and_gradients(f, "
      "inputs(DType::f64));\n";
  switch (failure.fault) {
    case Fault::single:
      return both_dtypes + fmt::format("  EXPECT_LE(largest_difference(single[{0}], exact[{0}]), {1:.3g});\n",
                                       failure.result, failure.allowed);
    case Fault::bits:
      return "  EXPECT_FALSE(check_bits(f, inputs(DType::f32)) || check_bits(f, inputs(DType::f64)));\n";
    default: break;
  }
  const char* const options = failure.fault == Fault::rules ? ", {.order = 2, .by = GradcheckOptions::By::rules}" : "";
  return fmt::format(
      "  const GradcheckResult result = gradcheck(f, inputs(DType::f64){});\n"
      "  EXPECT_TRUE(result) << result.message;\n",
      options);
}

}  // namespace

std::string function_text(const Program& program) {
  std::vector<std::string> names;
  std::string text = "[](std::span<const Var> x) -> Var {\n";
  std::size_t inputs = 0;
  for (const Value& value : program) {
    if (value.op == nullptr) {
      names.push_back(fmt::format("x[{}]", inputs++));
      continue;
    }
    std::vector<std::string> operands;
    for (const int operand : value.operands) operands.push_back(names[static_cast<std::size_t>(operand)]);
    names.push_back(fmt::format("v{}", names.size()));
    text += fmt::format("    const Var {} = {};\n", names.back(), call_text(value, operands));
  }
  const std::vector<int> results = results_of(program);
  std::vector<std::string> flat;
  for (const int i : results) {
    const std::string& name = names[static_cast<std::size_t>(i)];
    flat.push_back(results.size() == 1 ? name : fmt::format("reshape({0}, Shape{{{0}.value().numel()}})", name));
  }
  const std::string joined = fmt::format("{}", fmt::join(flat, ", "));
  return text + fmt::format("    return {};\n  }}", flat.size() == 1 ? joined : "concat({" + joined + "}, 0)");
}

std::string test_text(const Program& program, const Failure& failure, const std::string& name) {
  std::vector<std::string> inputs;
  for (const Value& value : program)
    if (value.op == nullptr) inputs.push_back("            " + input_text(value));
  return fmt::format(
      "// {}\nTEST(RandomPrograms, {}) {{\n  const auto f = {};\n"
      "  const auto inputs = [](DType dtype) -> std::vector<Tensor> {{\n    return {{\n{}}};\n  }};\n{}}}\n",
      failure.message, name, function_text(program), fmt::join(inputs, ",\n"), assertion_text(failure));
}

}  // namespace braid::programs
