#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <braid/autograd/params.h>
#include <braid/mhc/path.h>

#include <tests/golden/golden_case.h>

namespace braid::golden {

/// What a module is called with: in.* and param.* by the rest of their names, on a tape where they are floats.
class Arguments {
 public:
  Arguments(const Case& golden, Tape& tape);

  /// Throws FileError when the case has no such tensor.
  const Var& operator[](const std::string& name) const;
  const std::map<std::string, Var>& all() const { return variables_; }
  /// The dtype of the floating-point tensors.
  DType dtype() const;

  const Config& config;

 private:
  std::map<std::string, Var> variables_;
};

/// By name; the cotangent belongs to "y".
using Outputs = std::map<std::string, Var>;

/// The out.*, grad.* (or final.*) of a case as the library computes them.
using Evaluate = std::function<Tensors(const Case&)>;

/// One way to compute a module. Where there is a fused and a composed one, both are checked.
struct Path {
  std::string name;
  Evaluate evaluate;
};

/// Calls a module, and its vjp with the cotangent.
Path differentiated(std::string name, std::function<Outputs(const Arguments&)> call);
/// The same for a module whose only output is y.
Path path(std::string name, std::function<Var(const Arguments&)> call);
/// A module of mhc on both of its paths.
std::vector<Path> both_paths(const std::function<Var(const Arguments&, mhc::Path)>& call);

/// The largest difference that passes, relative as check.h says.
struct Tolerance {
  double f64 = 1e-10, f32 = 2e-5;
};

/// Checks the cases named `name` or `name`_*.
struct Module {
  std::string name;
  std::vector<Path> paths;
  /// How far the logits of a case go, for modules that compute them inside.
  std::function<double(const Case&)> largest_logit{};
  Tolerance tolerance{};
};

/// Replaces the parameters of a module by arguments; `name_of` maps a parameter's path to the argument's name.
template <Parametric M>
void set_params(M& module, const Arguments& arguments, const std::function<std::string(const std::string&)>& name_of) {
  for_each_param(module, [&](const std::string& path, Var& param) {
    const Var& argument = arguments[name_of(path)];
    check_shape(argument.shape() == param.shape(), "{}: expected shape {} but the case has {}", path, param.shape(),
                argument.shape());
    param = argument;
  });
}
template <Parametric M>
void set_params(M& module, const Arguments& arguments) {
  set_params(module, arguments, [](const std::string& path) { return path; });
}

}  // namespace braid::golden
