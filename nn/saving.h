#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <braid/autograd/params.h>
#include <braid/core/files/safetensors.h>

namespace braid::nn {

/// Tensors by name: parameters under their paths.
using NamedTensors = std::map<std::string, Tensor>;

/// Sets each target to the tensor of its name, converted to the target's dtype. Throws Error that begins with `source`
/// and lists names that are missing, unexpected or of another shape, 30 at most; then no target has changed.
void assign_by_name(const std::string& source, const std::vector<std::pair<std::string, Tensor*>>& targets,
                    const NamedTensors& tensors);

/// A field of a module that is saved and loaded with its parameters but not trained, such as a table of ids.
struct Buffer {
  Tensor value;  ///< of any shape, undefined until it is set

  void params(auto&&) {}
};

namespace detail {
/// What is wrong, as one line: the first problems and the number of the others.
std::string listed(std::vector<std::string> problems);

/// All that is saved of a module, by name.
std::vector<std::pair<std::string, Tensor*>> saved_tensors(auto& module) {
  std::vector<std::pair<std::string, Tensor*>> tensors;
  for_each_param(module, [&](const std::string& name, Var& p) { tensors.emplace_back(name, &p.mutable_value()); });
  const auto add = [&](const std::string& name, Buffer& b) { tensors.emplace_back(name, &b.value); };
  braid::detail::visit_parts<Buffer>(module, add, "");
  return tensors;
}
}  // namespace detail

/// The module's parameters and buffers by name.
NamedTensors to_tensors(const auto& module) {
  NamedTensors tensors;
  auto copy = module;  // shares their memory
  for (const auto& [name, tensor] : detail::saved_tensors(copy)) tensors.emplace(name, *tensor);
  return tensors;
}

/// Sets the module's parameters and buffers from tensors of their names. Throws as assign_by_name() does.
void from_tensors(auto& module, const NamedTensors& tensors, const std::string& source = "from_tensors") {
  assign_by_name(source, detail::saved_tensors(module), tensors);
}

/// Writes the module's parameters and buffers as safetensors under their names, `blocks.0.attention.q.weight`.
/// Throws as save_safetensors() does.
void save_module(const std::filesystem::path& path, const auto& module) { save_safetensors(path, to_tensors(module)); }

/// Reads what save_module wrote into a module of the same structure. Throws as load_safetensors() does,
/// and Error listing names that do not fit; then the module has not changed.
void load_module(const std::filesystem::path& path, auto& module) {
  from_tensors(module, load_safetensors(path).tensors, "load_module: " + path.string());
}

}  // namespace braid::nn
