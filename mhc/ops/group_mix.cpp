#include <braid/mhc/ops/group_mix.h>

#include <braid/autograd/ops.h>
#include <braid/autograd/ops/detail/in_f32.h>
#include <braid/mhc/kernels/group_mix.h>
#include <braid/mhc/mixings/composed.h>
#include <braid/mhc/ops/detail/arguments.h>
#include <braid/mhc/ops/read_write.h>

namespace braid::mhc {
namespace {

using detail::check_argument, detail::like, kernels::GroupMix;

Tensor forward(const GroupMix& in) {
  Tensor y(in.f.shape(), in.f.dtype());
  kernels::group_mix_kernels().dispatch("mix_groups", y.dtype(), [&](const auto& kernel) { kernel.mix(in, y); });
  return y;
}

/// Cotangents of mixing, scale, x and f, or of scale and f alone.
std::vector<Tensor> backward(const Tensor& cotangent, const GroupMix& in) {
  const Tensor dy = cotangent.contiguous();
  GroupMix d{.mixing = like(in.mixing), .scale = like(in.scale), .x = like(in.x), .f = like(in.f)};
  kernels::group_mix_kernels().dispatch("mix_groups", dy.dtype(), [&](const auto& kernel) { kernel.vjp(in, dy, d); });
  if (!in.mixing.defined()) return {d.scale, d.f};
  return {d.mixing, d.scale, d.x, d.f};
}

}  // namespace

Var scale_groups(const Var& scale, const Var& x) {
  if (x.dtype() == DType::bf16)
    return braid::detail::in_f32([](const Var& wide, const Var& s) { return scale_groups(s, wide); }, x, scale);
  detail::check_streams("scale_groups", x);
  check_argument("scale_groups", "scale", scale, {x.size(-2)}, x);
  if (composed()) return expand_dims(scale, -1) * x;
  const GroupMix in{.scale = scale.value().contiguous(), .f = x.value().contiguous()};
  return record("scale_groups", forward(in), {scale, x}, [in](const Tensor& dy) { return backward(dy, in); });
}

Var mix_groups(const Var& mixing, const Var& scale, const Var& x, const Var& f) {
  if (x.dtype() == DType::bf16)
    return braid::detail::in_f32(
        [](const Var& wide, const Var& m, const Var& s, const Var& g) { return mix_groups(m, s, wide, g); }, x, mixing,
        scale, f);
  detail::check_streams("mix_groups", x);
  const std::int64_t n = x.size(-2);
  check_argument("mix_groups", "mixing", mixing, {n, n}, x);
  check_argument("mix_groups", "scale", scale, {n}, x);
  check_argument("mix_groups", "f", f, x.shape(), x);
  if (composed()) return matmul(mixing, x) + expand_dims(scale, -1) * f;
  const GroupMix in{.mixing = mixing.value().contiguous(),
                    .scale = scale.value().contiguous(),
                    .x = x.value().contiguous(),
                    .f = f.value().contiguous()};
  return record("mix_groups", forward(in), {mixing, scale, x, f}, [in](const Tensor& dy) { return backward(dy, in); });
}

}  // namespace braid::mhc
