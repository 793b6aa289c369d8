#include <braid/mhc/ops/group_mix.h>

#include <braid/mhc/kernels/group_mix.h>
#include <braid/mhc/kernels/tiles.h>

namespace braid::mhc {
namespace {

using kernels::data_or_null, kernels::mutable_or_null;

/// mixing and x are undefined when groups are scaled only.
struct Inputs {
  Tensor mixing = {}, scale = {}, x = {}, f = {};  // [n, n], [n], [..., n, C], [..., n, C]

  kernels::StreamSizes sizes() const { return kernels::sizes_of(f.shape()); }
};

void check_map(const char* op, const char* name, const Var& map, const Shape& shape, const Var& x) {
  check_shape(map.shape() == shape, "{}: {} must have shape {} to match x {} but has {}", op, name, shape, x.shape(),
              map.shape());
  check_same_dtype(op, map.value(), x.value());
}

Tensor forward(const Inputs& in) {
  Tensor y(in.f.shape(), in.f.dtype());
  dispatch_float("mix_groups", in.f.dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernels::group_mix_kernels().of<T>().mix({in.sizes(), data_or_null<T>(in.mixing), in.scale.data<T>(),
                                              data_or_null<T>(in.x), in.f.data<T>(), y.mutable_data<T>()});
  });
  return y;
}

Inputs backward(const Tensor& cotangent, const Inputs& in) {
  const Tensor dy = cotangent.contiguous();
  const auto like = [](const Tensor& t) { return t.defined() ? Tensor(t.shape(), t.dtype()) : Tensor(); };
  Inputs d{like(in.mixing), like(in.scale), like(in.x), like(in.f)};
  dispatch_float("mix_groups", dy.dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernels::group_mix_kernels().of<T>().vjp({in.sizes(), data_or_null<T>(in.mixing), in.scale.data<T>(),
                                              data_or_null<T>(in.x), in.f.data<T>(), dy.data<T>(),
                                              mutable_or_null<T>(d.mixing), d.scale.mutable_data<T>(),
                                              mutable_or_null<T>(d.x), d.f.mutable_data<T>()});
  });
  return d;
}

}  // namespace

Var scale_groups(const Var& scale, const Var& x) {
  check_shape(x.rank() >= 2, "scale_groups: x must have shape [..., n, C] but has {}", x.shape());
  check_map("scale_groups", "scale", scale, {x.size(-2)}, x);
  const Inputs in{.scale = scale.value().contiguous(), .f = x.value().contiguous()};
  return record("scale_groups", forward(in), {scale, x}, [in](const Tensor& dy) {
    const Inputs d = backward(dy, in);
    return std::vector{d.scale, d.f};
  });
}

Var mix_groups(const Var& mixing, const Var& scale, const Var& x, const Var& f) {
  check_shape(x.rank() >= 2, "mix_groups: x must have shape [..., n, C] but has {}", x.shape());
  const std::int64_t n = x.size(-2);
  check_map("mix_groups", "mixing", mixing, {n, n}, x);
  check_map("mix_groups", "scale", scale, {n}, x);
  check_map("mix_groups", "f", f, x.shape(), x);
  const Inputs in{mixing.value().contiguous(), scale.value().contiguous(), x.value().contiguous(),
                  f.value().contiguous()};
  return record("mix_groups", forward(in), {mixing, scale, x, f}, [in](const Tensor& dy) {
    const Inputs d = backward(dy, in);
    return std::vector{d.mixing, d.scale, d.x, d.f};
  });
}

}  // namespace braid::mhc
