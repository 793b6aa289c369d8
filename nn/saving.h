#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <braid/autograd/params.h>
#include <braid/core/files/safetensors.h>

namespace braid::nn {

/// Tensors by name: parameters under their paths.
using NamedTensors = std::map<std::string, Tensor>;

/// Maps the path of a parameter or buffer to its name elsewhere.
using NameOf = std::function<std::string(const std::string&)>;

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
std::vector<std::pair<std::string, Tensor*>> saved_tensors(auto& module, const NameOf& name_of = std::identity()) {
  std::vector<std::pair<std::string, Tensor*>> tensors;
  for_each_param(module, [&](auto& path, Var& p) { tensors.emplace_back(name_of(path), &p.mutable_value()); });
  const auto add = [&](const std::string& path, Buffer& b) { tensors.emplace_back(name_of(path), &b.value); };
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

/// Sets the module's parameters and buffers from tensors of their names, or of those to which `name_of` maps their
/// paths. Throws as assign_by_name() does.
void from_tensors(auto& module, const NamedTensors& tensors, const std::string& source = "from_tensors",
                  const NameOf& name_of = std::identity()) {
  assign_by_name(source, detail::saved_tensors(module, name_of), tensors);
}

/// Writes the module's parameters and buffers as safetensors under their names, `blocks.0.attention.q.weight`.
/// Throws as save_safetensors() does.
void save_module(const std::filesystem::path& path, const auto& module) { save_safetensors(path, to_tensors(module)); }

/// Reads what save_module wrote into a module of the same structure, or, by `name_of`, a file with other names. Throws
/// as load_safetensors() does, and Error listing names that do not fit; then the module has not changed.
void load_module(const std::filesystem::path& path, auto& module, const NameOf& name_of = std::identity()) {
  from_tensors(module, load_safetensors(path).tensors, "load_module: " + path.string(), name_of);
}

}  // namespace braid::nn
