#include <braid/autograd/ops/group_norm.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/detail/in_f32.h>
#include <braid/autograd/ops/layer_norm.h>
#include <braid/autograd/ops/reshape.h>

namespace braid {
namespace {

/// A parameter [C] as it broadcasts to x [B, C, ...].
Var along_channels(const char* name, const Var& x, const Var& parameter) {
  check_same_dtype("group_norm", x.value(), parameter.value());
  check_shape(parameter.shape() == Shape{x.size(1)}, "group_norm: {} must have shape [{}] to match x {} but has {}",
              name, x.size(1), x.shape(), parameter.shape());
  Shape shape = parameter.shape();
  for (int axis = 2; axis < x.rank(); ++axis) shape = shape.concat({1});
  return reshape(parameter, shape);
}

}  // namespace

// Layer normalization of rows that are the groups.
Var group_norm(const Var& x, std::int64_t groups, double eps) {
  if (x.dtype() == DType::bf16)
    return detail::in_f32([&](const Var& wide) { return group_norm(wide, groups, eps); }, x);
  check_floating("group_norm", x.dtype());
  check_shape(x.rank() >= 2, "group_norm: x must have shape [B, C, ...] but has {}", x.shape());
  check_value(groups >= 1 && x.size(1) % groups == 0, "group_norm: groups must divide the channels of x {} but is {}",
              x.shape(), groups);
  if (x.shape().numel() == 0) return x;  // any number of groups divides 0 channels, also one too large for `rows`
  const Shape rows{x.size(0) * groups, x.size(1) / groups * x.shape().axes(2, x.rank()).numel()};
  return reshape(layer_norm(reshape(x, rows), eps), x.shape());
}

Var group_norm(const Var& x, std::int64_t groups, const Var& weight, const Var& bias, double eps) {
  if (x.dtype() == DType::bf16)
    return detail::in_f32(
        [&](const Var& wide, const Var& w, const Var& b) { return group_norm(wide, groups, w, b, eps); }, x, weight,
        bias);
  const Var normalized = group_norm(x, groups, eps);
  return normalized * along_channels("weight", x, weight) + along_channels("bias", x, bias);
}

}  // namespace braid
