#include <braid/autograd/ops/group_norm.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/detail/in_f32.h>
#include <braid/autograd/ops/layer_norm.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/transpose.h>

namespace braid {
namespace {

/// The groups of x as an axis: [B, G, C / G, P] for P positions with the channels first, else [B, P, G, C / G].
Shape by_group(const Shape& x, std::int64_t groups, Channels channels) {
  check_shape(x.rank() >= 2, "group_norm: x must have shape [B, {}] but has {}",
              channels == Channels::first ? "C, ..." : "..., C", x);
  const std::int64_t count = x[channels == Channels::first ? 1 : -1];
  check_value(groups >= 1 && count % groups == 0, "group_norm: groups must divide the {} channels of x {} but is {}",
              count, x, groups);
  if (x.numel() == 0) groups = 1;  // any number divides 0 channels, also one too large for a shape
  if (channels == Channels::first) return {x[0], groups, count / groups, x.axes(2, x.rank()).numel()};
  return {x[0], x.axes(1, x.rank() - 1).numel(), groups, count / groups};
}

/// Layer normalization of rows that are the groups. x by_group, not empty.
Var normalized(const Var& x, Channels channels, double eps) {
  const Var groups = channels == Channels::first ? x : transpose(x, 1, 2);
  const Shape& shape = groups.shape();
  const Var y = reshape(layer_norm(reshape(groups, {shape[0] * shape[1], shape[2] * shape[3]}), eps), shape);
  return channels == Channels::first ? y : transpose(y, 1, 2);
}

/// A parameter [C] as it broadcasts to x by_group.
Var along_channels(const char* name, const Var& parameter, const Var& x, const Shape& groups, Channels channels) {
  const bool first = channels == Channels::first;
  const std::int64_t count = x.size(first ? 1 : -1);
  check_same_dtype("group_norm", x.value(), parameter.value());
  check_shape(parameter.shape() == Shape{count}, "group_norm: {} must have shape [{}] to match x {} but has {}", name,
              count, x.shape(), parameter.shape());
  return reshape(parameter, first ? Shape{groups[1], groups[2], 1} : Shape{groups[2], groups[3]});
}

}  // namespace

Var group_norm(const Var& x, std::int64_t groups, double eps, Channels channels) {
  if (x.dtype() == DType::bf16)
    return detail::in_f32([&](const Var& wide) { return group_norm(wide, groups, eps, channels); }, x);
  check_floating("group_norm", x.dtype());
  const Shape shape = by_group(x.shape(), groups, channels);
  return x.numel() == 0 ? x : reshape(normalized(reshape(x, shape), channels, eps), x.shape());
}

Var group_norm(const Var& x, std::int64_t groups, const Var& weight, const Var& bias, double eps, Channels channels) {
  if (x.dtype() == DType::bf16)
    return detail::in_f32(
        [&](const Var& wide, const Var& w, const Var& b) { return group_norm(wide, groups, w, b, eps, channels); }, x,
        weight, bias);
  check_floating("group_norm", x.dtype());
  const Shape shape = by_group(x.shape(), groups, channels);
  const Var w = along_channels("weight", weight, x, shape, channels);
  const Var b = along_channels("bias", bias, x, shape, channels);
  const Var y = x.numel() == 0 ? reshape(x, shape) : normalized(reshape(x, shape), channels, eps);
  return reshape(y * w + b, x.shape());
}

}  // namespace braid
