#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <braid/autograd/params.h>

namespace braid::nn {

/// Some of a module's parameters, by their paths in it, to be trained while the others are frozen. Only their gradients
/// are computed:
///
///     Subset trained = subset(model, [](std::string_view path) { return path.starts_with("head."); });
///     auto step = value_and_grad([&](const Subset& s) { return with(model, s).loss(tokens, targets); });
///     auto [loss, grads] = step(trained);
///     optimizer.step(trained, grads);
///     model = with(model, trained);
struct Subset {
  std::vector<std::pair<std::string, Var>> parameters;  ///< by path, in the module's order

  void params(auto&& visit) {
    for (auto& [path, parameter] : parameters) visit(path, parameter);
  }
};

/// The parameters of `module` whose paths `chosen` accepts; they share their storage. Throws ValueError that lists all
/// paths when it accepts none, since nothing would be trained.
Subset subset(const auto& module, const std::function<bool(std::string_view path)>& chosen) {
  Subset some;
  std::string paths;
  for_each_param(module, [&](const std::string& path, const Var& p) {
    if (chosen(path)) some.parameters.emplace_back(path, p);
    paths += " " + path;
  });
  check_value(!some.parameters.empty(), "subset: no parameter is chosen of{}", paths);
  return some;
}

/// A copy of `module` with its parameters replaced by those of `some`. Throws ValueError naming a path that the
/// module does not have, or not in the order of `some`.
template <class M>
M with(M module, const Subset& some) {
  auto next = some.parameters.begin();
  for_each_param(module, [&](const std::string& path, Var& p) {
    if (next != some.parameters.end() && next->first == path) p = next++->second;
  });
  check_value(next == some.parameters.end(), "with: the module has no parameter {} in this place",
              next == some.parameters.end() ? "" : next->first);
  return module;
}

}  // namespace braid::nn
