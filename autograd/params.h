#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <braid/autograd/tape.h>

namespace braid {

namespace detail {
struct AnyVisitor {
  template <class Field>
  void operator()(std::string_view, Field&) const {}
};
}  // namespace detail

/// A struct with parameters: `void params(auto&& visit) { visit("weight", weight); visit("child", child); }`.
/// Each parameter is visited once, in a fixed order.
template <class M>
concept Module = requires(M& m) { m.params(detail::AnyVisitor{}); };

namespace detail {
template <class T>
inline constexpr bool has_params = Module<T>;
template <>
inline constexpr bool has_params<Var> = true;
template <class T>
inline constexpr bool has_params<std::vector<T>> = has_params<T>;
}  // namespace detail

/// A variable, a module, or a vector of these.
template <class P>
concept Parametric = detail::has_params<std::remove_const_t<P>>;

/// Calls `visit(path, Var&)` for each parameter in order; paths read `blocks.0.attention.q.weight`.
template <Parametric P, class Visit>
  requires(!std::is_const_v<P>)
void for_each_param(P& node, Visit&& visit, const std::string& path = "") {
  auto descend = [&](const std::string& name, auto& child) {
    for_each_param(child, visit, path.empty() ? name : path + "." + name);
  };
  if constexpr (std::is_same_v<P, Var>)
    visit(path, node);
  else if constexpr (Module<P>)
    node.params([&](std::string_view name, auto& child) { descend(std::string(name), child); });
  else
    for (std::size_t i = 0; i < node.size(); ++i) descend(std::to_string(i), node[i]);
}

/// Read-only: `visit(path, const Var&)`.
template <Parametric P, class Visit>
void for_each_param(const P& node, Visit&& visit) {
  // A module states its parameters once, in a non-const member; this visitor does not write through it.
  for_each_param(const_cast<P&>(node), [&](const std::string& path, Var& param) { visit(path, std::as_const(param)); });
}

namespace detail {

/// Calls `visit(Var&)` for every variable in a tuple, in order; fields that are not Parametric have none.
template <class... Fields, class Visit>
void for_each_var(std::tuple<Fields...>& fields, Visit visit) {
  auto visit_field = [&]<class T>(T& field) {
    if constexpr (Parametric<T>) for_each_param(field, [&](const std::string&, Var& v) { visit(v); });
  };
  std::apply([&](Fields&... field) { (visit_field(field), ...); }, fields);
}

}  // namespace detail

/// A parameter and its path.
struct NamedParam {
  std::string name;  ///< its path
  Var* param;        ///< the field of the module
};

/// The parameters of a module in order, with their paths.
template <Parametric M>
std::vector<NamedParam> named_params(M& module) {
  std::vector<NamedParam> list;
  for_each_param(module, [&](const std::string& path, Var& param) { list.push_back({path, &param}); });
  return list;
}

/// The number of parameters of a module, counted by elements.
template <Parametric M>
std::int64_t num_params(const M& module) {
  std::int64_t count = 0;
  for_each_param(module, [&](const std::string&, const Var& param) { count += param.value().numel(); });
  return count;
}

}  // namespace braid
