#include <tests/planted/rule_mutations.h>

#include <utility>

#include <braid/autograd/ops.h>

namespace braid::planted::rules {
namespace {

std::vector<Var> constants(std::span<const Var> variables) {
  std::vector<Var> values;
  for (const Var& v : variables) values.push_back(detach(v));
  return values;
}

/// The same with zeros outside of the first position of an axis; what has no such axis stays as it is.
Var first_alone(const Var& x, int axis) {
  return x.rank() <= axis ? x : pad(slice(x, axis, 0, 1), axis, 0, x.size(axis) - 1);
}

}  // namespace

WrongRule changed(std::size_t input, std::function<Var(const Var& dx, const Applied& op)> how) {
  return [=](const Applied& op, const Rule& right) {
    std::vector<Var> dxs = right(op);
    if (dxs[input].value().defined()) dxs[input] = how(dxs[input], op);
    return dxs;
  };
}

WrongRule scaled(std::size_t input, double factor) {
  return changed(input, [=](const Var& dx, const Applied&) { return factor * dx; });
}

WrongRule shifted(std::size_t input, int axis) {
  return changed(input, [=](const Var& dx, const Applied&) { return dx.rank() == 0 ? dx : roll(dx, axis, 1); });
}

WrongRule swapped(std::size_t a, std::size_t b) {
  return [=](const Applied& op, const Rule& right) {
    std::vector<Var> dxs = right(op);
    if (dxs[a].value().defined() && dxs[b].value().defined() && dxs[a].shape() == dxs[b].shape())
      std::swap(dxs[a], dxs[b]);
    return dxs;
  };
}

WrongRule first_only(std::size_t input, int axis) {
  return [=](const Applied& op, const Rule& right) {
    std::vector<Var> dys(op.dys.begin(), op.dys.end()), dxs = right(op);
    for (Var& dy : dys)
      if (dy.value().defined()) dy = first_alone(dy, axis);
    dxs[input] = right({op.inputs, op.outputs, dys, op.needs})[input];
    return dxs;
  };
}

WrongRule of_constant_inputs() {
  return [](const Applied& op, const Rule& right) {
    return right({constants(op.inputs), op.outputs, op.dys, op.needs});
  };
}

WrongRule of_constant_outputs() {
  return [](const Applied& op, const Rule& right) {
    return right({op.inputs, constants(op.outputs), op.dys, op.needs});
  };
}

WrongRule of_constant_dys() {
  return [](const Applied& op, const Rule& right) {
    return right({op.inputs, op.outputs, constants(op.dys), op.needs});
  };
}

}  // namespace braid::planted::rules
