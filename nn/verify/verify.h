#pragma once
#include <concepts>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <braid/nn/convert.h>
#include <braid/nn/verify/recorded_case.h>

namespace braid::nn {

/// Settings of verify().
struct VerifyOptions {
  DType dtype = DType::f64;           ///< the dtype in which the module runs
  std::optional<double> tolerance{};  ///< the largest error that counts as right; by default 1e-10 in f64, 2e-5 in f32
  NameOf name_of = std::identity();   ///< maps the path of a parameter or buffer to its name in the case
};

/// A tensor of the case and the error of the computed one: NaN when it was not computed, or with another shape.
struct Comparison {
  std::string name;  ///< of the tensor in the case
  double error;      ///< by relative_error
  bool ok;           ///< within the tolerance
};

/// Whether a module agrees with a recorded case.
struct Verification {
  double tolerance = 0;             ///< the largest error that counts as right
  double worst = 0;                 ///< the largest error
  std::string message{};            ///< the first difference; empty when everything agrees
  std::vector<Comparison> table{};  ///< out.*, then grad.*

  explicit operator bool() const { return message.empty(); }  ///< whether everything agrees
};

/// The table, a line per tensor, and the message.
std::string to_string(const Verification& verification);

/// Compares computed tensors with every out.*, grad.*, final.*, jvp.* and hvp.* of a case; none may be missing on
/// either side. The last two, of second order, get ten times the tolerance.
Verification compare(const RecordedCase& recorded, const NamedTensors& results, double tolerance);

namespace detail {

using NamedVars = std::map<std::string, Var>;
using CaseCall = std::function<NamedVars(const CaseInputs&)>;

Verification verify(const RecordedCase& recorded, const CaseCall& call, const VerifyOptions& options);

/// Throws Error that lists the parameters that are missing, unexpected or of another shape.
void check_parameters(const RecordedCase& recorded, const NamedTensors& parameters);

/// Outputs by name: y if there is one; y0, y1, .. if there are several.
inline NamedVars named_outputs(const Var& y) { return {{"y", y}}; }
inline NamedVars named_outputs(NamedVars outputs) { return outputs; }
NamedVars named_outputs(const std::vector<Var>& ys);

}  // namespace detail

/// Calls `call(inputs)` and its vjp with the recorded cotangents, and compares every output and gradient. `call`
/// returns a Var, the output y; a vector of them, y0, y1, ..; or a map of them by name. Of a case with tangents
/// `direction.NAME` for inputs and parameters, it also compares `jvp.NAME`, how outputs with cotangents move along
/// them, and `hvp.NAME`, how gradients do.
template <class F>
  requires std::invocable<const F&, const CaseInputs&>
Verification verify(const RecordedCase& recorded, const F& call, const VerifyOptions& options = {}) {
  return detail::verify(
      recorded, [&](const CaseInputs& inputs) { return detail::named_outputs(call(inputs)); }, options);
}

/// The same for a module, whose parameters, and buffers of a recorded name, are those of the case:
///
///     const auto result = nn::verify(nn::load_case("block.safetensors"), block,
///                                    [](const Block& block, const nn::CaseInputs& in) { return block(in["x"]); });
///     fmt::print("{}", to_string(result));
///
/// When something differs, the message also names the first recorded part of the module whose value, or else gradient,
/// no op on the tape has computed. The module needs no code for that, and `module` itself does not change.
/// Throws Error that lists every parameter that is missing, unexpected or of another shape.
template <class M, class F>
  requires std::invocable<const F&, const M&, const CaseInputs&>
Verification verify(const RecordedCase& recorded, const M& module, const F& call, const VerifyOptions& options = {}) {
  M port = to_dtype(module, options.dtype);
  NamedTensors parameters;
  for_each_param(port, [&](const std::string& path, Var& p) { parameters[options.name_of(path)] = p.value(); });
  const NamedTensors given = recorded.group("param.");
  for (const auto& [name, tensor] : detail::saved_tensors(port, options.name_of))  // buffers, too
    if (given.contains(name)) parameters[name] = std::exchange(*tensor, given.at(name).to(tensor->dtype()));
  detail::check_parameters(recorded, parameters);
  const auto call_port = [&](const CaseInputs& inputs) {
    set_params(port, inputs, options.name_of);
    return call(std::as_const(port), inputs);
  };
  return verify(recorded, call_port, options);
}

}  // namespace braid::nn
