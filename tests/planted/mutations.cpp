#include <tests/planted/mutations.h>

#include <utility>

#include <braid/autograd/ops.h>
#include <braid/core/detail/indexing.h>

namespace braid::planted {
namespace {

/// The cotangent of one input for other cotangents of the outputs.
WrongVjp for_other_dys(std::size_t input, std::function<Var(const Tensor& dy)> other) {
  return [=](const Call& call) {
    std::vector<Tensor> dys = call.dys, dxs = call.vjp(dys);
    for (Tensor& dy : dys)
      if (dy.defined()) dy = other(dy).value();
    dxs[input] = call.vjp(dys)[input];
    return dxs;
  };
}

/// The same with zeros outside of the positions [begin, end) of an axis; what has no such axis stays as it is.
Var within(const Tensor& t, int axis, std::int64_t begin, std::int64_t end) {
  if (t.rank() <= axis) return t;
  Tensor y = zeros(t.shape(), t.dtype());
  detail::write_slice(y, axis, begin, t.slice(axis, begin, end));
  return y;
}

}  // namespace

WrongVjp changed(std::size_t input, std::function<Var(const Tensor& dx, const Call& call)> how) {
  return [=](const Call& call) {
    std::vector<Tensor> dxs = call.vjp(call.dys);
    if (input < dxs.size() && dxs[input].defined()) dxs[input] = how(dxs[input], call).value();
    return dxs;
  };
}

WrongVjp scaled(std::size_t input, double factor) {
  return changed(input, [=](const Tensor& dx, const Call&) { return factor * Var(dx); });
}

WrongVjp transposed(std::size_t input) {
  return changed(input,
                 [](const Tensor& dx, const Call&) -> Var { return dx.size(-1) == dx.size(-2) ? dx.transpose() : dx; });
}

WrongVjp shifted(std::size_t input, int axis) {
  return changed(input, [=](const Tensor& dx, const Call&) {
    const std::int64_t last = dx.size(axis) - 1;
    return concat({dx.slice(axis, last, last + 1), dx.slice(axis, 0, last)}, axis);
  });
}

WrongVjp one_element_scaled(std::size_t input, double factor) {
  return changed(input, [=](const Tensor& dx, const Call&) -> Var {
    Tensor y = dx.clone();
    y.mutable_data<double>()[y.numel() / 2] *= factor;
    return y;
  });
}

WrongVjp swapped(std::size_t a, std::size_t b) {
  return [=](const Call& call) {
    std::vector<Tensor> dxs = call.vjp(call.dys);
    if (dxs[a].defined() && dxs[b].defined() && dxs[a].shape() == dxs[b].shape()) std::swap(dxs[a], dxs[b]);
    return dxs;
  };
}

WrongVjp first_only(std::size_t input, int axis) {
  return for_other_dys(input, [=](const Tensor& dy) { return within(dy, axis, 0, 1); });
}

WrongVjp without_last(std::size_t input, int axis) {
  return for_other_dys(input, [=](const Tensor& dy) { return within(dy, axis, 0, -1); });
}

WrongVjp for_ones(std::size_t input) {
  return for_other_dys(input, [](const Tensor& dy) -> Var { return ones(dy.shape(), dy.dtype()); });
}

WrongVjp vjp_of(std::function<Var(std::span<const Var> x)> other) {
  return [=](const Call& call) {
    Tape tape;
    std::vector<Var> x;
    for (const Tensor& input : call.inputs) x.push_back(tape.watch(input));
    tape.backward(other(x), call.dys.front());
    std::vector<Tensor> dxs;
    for (const Var& v : x) dxs.push_back(tape.gradient(v));
    return dxs;
  };
}

WrongVjp vjp_of(std::size_t input, std::function<std::vector<Var>(std::span<const Var> x, const Call& call)> other) {
  return changed(input, [=](const Tensor&, const Call& call) -> Var {
    Tape tape;
    std::vector<Var> x;
    for (const Tensor& value : call.inputs) x.push_back(tape.watch(value));
    const std::vector<Var> outputs = other(x, call);
    std::vector<Var> ys;
    std::vector<Tensor> dys;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].value().defined() || !call.dys[i].defined()) continue;
      ys.push_back(outputs[i]);
      dys.push_back(call.dys[i]);
    }
    tape.backward(ys, dys);
    return tape.gradient(x[input]);
  });
}

Var with_scaled_gradient(const Var& v, const Tensor& factor) { return detach(v) + Var(factor) * (v - detach(v)); }

}  // namespace braid::planted
