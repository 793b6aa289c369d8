#include <tests/golden/module.h>

namespace braid::golden {

Arguments::Arguments(const Case& golden, Tape& tape) : config(golden.config) {
  for (const auto& [key, tensor] : golden.tensors) {
    const std::string name = after("in.", key) + after("param.", key);
    if (!name.empty()) variables_[name] = tensor.dtype() == DType::i32 ? Var(tensor) : tape.watch(tensor);
  }
}

const Var& Arguments::operator[](const std::string& name) const {
  const auto found = variables_.find(name);
  check<FileError>(found != variables_.end(), "the file must have 'in.{}' or 'param.{}'", name, name);
  return found->second;
}

DType Arguments::dtype() const {
  for (const auto& [name, variable] : variables_)
    if (variable.dtype() != DType::i32) return variable.dtype();
  return DType::f64;
}

Path differentiated(std::string name, std::function<Outputs(const Arguments&)> call) {
  return {std::move(name), [call = std::move(call)](const Case& golden) {
            Tape tape;
            const Arguments arguments(golden, tape);
            const Outputs outputs = call(arguments);
            tape.backward(outputs.at("y"), golden.tensor("cotangent"));
            Tensors results;
            for (const auto& [output, value] : outputs) results["out." + output] = value.value();
            for (const auto& [input, variable] : arguments.all())
              if (variable.requires_grad()) results["grad." + input] = tape.gradient(variable);
            return results;
          }};
}

Path path(std::string name, std::function<Var(const Arguments&)> call) {
  return differentiated(std::move(name), [call = std::move(call)](const Arguments& arguments) {
    return Outputs{{"y", call(arguments)}};
  });
}

std::vector<Path> both_paths(const std::function<Var(const Arguments&, mhc::Path)>& call) {
  std::vector<Path> paths;
  for (const mhc::Path which : {mhc::Path::reference, mhc::Path::fused})
    paths.push_back(path(std::string(mhc::name(which)), [=](const Arguments& a) { return call(a, which); }));
  return paths;
}

}  // namespace braid::golden
