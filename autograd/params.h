#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
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
  void operator()(std::string_view, auto&) const {}
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
template <class T, std::size_t n>
inline constexpr bool has_params<std::array<T, n>> = has_params<T>;
template <class T>
inline constexpr bool has_params<std::optional<T>> = has_params<T>;

}  // namespace detail

/// A variable, a module, or a vector, array or optional of these.
template <class P>
concept Parametric = detail::has_params<std::remove_const_t<P>>;

namespace detail {

struct NamedParams {
  int params;
};
template <class M>
struct WithNamedParams : M, NamedParams {};

/// Whether M has a member called params, perhaps a private one: then the name is ambiguous in WithNamedParams.
template <class M>
concept NamesParams = std::is_class_v<M> && !std::is_final_v<M> && !requires { &WithNamedParams<M>::params; };

/// Says in one sentence, once per type, why T is no field of a module.
template <class T>
struct Field {
  static constexpr bool kIsTensor = std::is_same_v<std::remove_const_t<T>, Tensor>;
  static constexpr bool kIsHidden = !Parametric<T> && NamesParams<T>;
  static_assert(!Parametric<T> || !std::is_const_v<T>,
                "braid: params() must not be const, because braid also sets the fields that it visits");
  static_assert(!kIsTensor, "braid: a Tensor has no gradient; what is differentiated is a Var: write Var(x)");
  static_assert(!kIsHidden, "braid: params of this struct must be public, and callable as `void params(auto&& visit)`");
  static_assert(Parametric<T> || kIsTensor || kIsHidden,
                "braid: a field with parameters must be a Var, a struct with a public member template `void "
                "params(auto&& visit)`, or a std::vector, std::array or std::optional of these");
};

/// Calls f(name, child) for each field of a module and each element of a vector or array. The value of an optional has
/// no name.
template <class P, class F>
void for_each_child(P& node, F&& f) {
  if constexpr (Module<P>) {
    node.params(f);
  } else if constexpr (requires { node.has_value(); }) {
    if (node) f("", *node);
  } else if constexpr (!std::is_same_v<P, Var>) {
    for (std::size_t i = 0; i < node.size(); ++i) f(std::to_string(i), node[i]);
  }
}

/// Calls `visit(path, part)` for each part of type T, a parameter or a module.
template <class T, class P, class Visit>
void visit_parts(P& node, const Visit& visit, const std::string& path) {
  if constexpr (!Parametric<P> || std::is_const_v<P>)
    static_cast<void>(sizeof(Field<P>));  // says why
  else if constexpr (std::is_same_v<P, T>)
    visit(path, node);
  else
    for_each_child(node, [&](std::string_view name, auto& child) {
      visit_parts<T>(child, visit, (path + (path.empty() || name.empty() ? "" : ".")).append(name));
    });
}

}  // namespace detail

/// What has parameters, or a member `params` that braid cannot call, which visiting it tells: a layer that is any
/// callable must not lose its parameters unseen.
template <class T>
concept WithParams = Parametric<T> || detail::NamesParams<T>;

/// Calls `visit(path, Var&)` for each parameter in order; paths read `blocks.0.attention.q.weight`. An optional field
/// without a value has none. Throws Error when two parameters have the same path.
template <class P, class Visit>
  requires(!std::is_const_v<P>)
void for_each_param(P& node, Visit&& visit) {
  std::set<std::string> paths;
  const auto visit_once = [&](const std::string& path, Var& param) {
    check<Error>(paths.insert(path).second,
                 "params: two fields are visited as '{}', and files and optimizers would keep only one of them", path);
    visit(path, param);
  };
  detail::visit_parts<Var>(node, visit_once, "");
}

/// Read-only: `visit(path, const Var&)`.
template <class P, class Visit>
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
std::vector<NamedParam> named_params(auto& module) {
  std::vector<NamedParam> list;
  for_each_param(module, [&](const std::string& path, Var& param) { list.push_back({path, &param}); });
  return list;
}

/// The number of parameters of a module, counted by elements.
std::int64_t num_params(const auto& module) {
  std::int64_t count = 0;
  for_each_param(module, [&](const std::string&, const Var& param) { count += param.value().numel(); });
  return count;
}

}  // namespace braid
