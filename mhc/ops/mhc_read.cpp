#include <braid/mhc/ops/mhc_read.h>

#include <braid/mhc/kernels/mhc_read.h>
#include <braid/mhc/kernels/tiles.h>

namespace braid::mhc {
namespace {

using kernels::data_or_null, kernels::mutable_or_null, kernels::MHCParams, kernels::MHCSizes, kernels::MHCWrite;

/// Tensors that the kernels take as one write; undefined when there is none. The backward pass needs no x.
struct Write {
  Tensor maps, f, x = {};  // [..., m], [..., C], [..., n, C]

  template <class T>
  MHCWrite<T> kernel(std::int64_t n) const {
    if (!f.defined()) return {};
    const T* h = maps.data<T>();
    const std::int64_t m = maps.size(-1);
    return {data_or_null<T>(x), {h + n, m}, {h + 2 * n, m}, f.data<T>()};
  }
};

struct Params {
  Tensor phi, alpha, bias;

  template <class T>
  MHCParams<T> kernel() const {
    return {phi.data<T>(), alpha.data<T>(), bias.data<T>()};
  }
};

Shape lead_of(const Tensor& x) { return x.shape().axes(0, x.rank() - 2); }

MHCSizes sizes_of(const Tensor& x, const FusedMhc& c) {
  return {lead_of(x).numel(), x.size(-2), x.size(-1), c.iterations, c.rows_last, c.eps};
}

void check_params(const Tensor& x, const FusedMhc& c) {
  check_shape(x.rank() >= 2, "ManifoldConstrainedHC: x must have shape [..., n, C] but has {}", x.shape());
  const std::int64_t n = x.size(-2), width = n * x.size(-1), m = n * (n + 2);
  const auto expect = [&](const char* name, const Var& param, const Shape& shape) {
    check_shape(param.shape() == shape, "ManifoldConstrainedHC: {} must have shape {} to match x {} but has {}", name,
                shape, x.shape(), param.shape());
    check_same_dtype("ManifoldConstrainedHC", x, param.value());
  };
  expect("phi", c.phi, {width, m});
  expect("alpha", c.alpha, {3});
  expect("bias", c.bias, {m});
}

struct Forward {
  Tensor u, x, maps, z, r;
};

/// What the backward pass needs again.
struct Saved {
  Tensor maps, z, r;
  std::shared_ptr<KeptStream> stream;
};

Forward forward(const MHCSizes& s, const Params& params, const Write& before, const Tensor& x) {
  const Tensor& like = before.x.defined() ? before.x : x;
  const Shape lead = lead_of(like);
  const auto make = [&](const Shape& tail) { return Tensor(lead.concat(tail), like.dtype()); };
  Forward out{make({s.channels}), before.x.defined() ? make({s.n, s.channels}) : Tensor(), make({s.maps()}),
              make({s.maps()}), make({})};
  dispatch_float("ManifoldConstrainedHC", like.dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernels::mhc_read_kernels<T>().read({s, params.kernel<T>(), before.kernel<T>(s.n), data_or_null<T>(x),
                                         mutable_or_null<T>(out.x), out.z.mutable_data<T>(), out.r.mutable_data<T>(),
                                         out.maps.mutable_data<T>(), out.u.mutable_data<T>()});
  });
  if (!before.x.defined()) out.x = x;
  return out;
}

/// Where dx goes: to the memory of dy, which is used but once, if the kernel can work in place and nobody else holds
/// it.
Tensor room_for_dx(const Tensor& x, Tensor& dy) {
  const bool in_place = dy.defined() && dy.unshared() && dy.is_contiguous() && x.size(-2) <= 4;
  return in_place ? std::move(dy) : Tensor(x.shape(), x.dtype());
}

/// Cotangents of x (that of the write before, when there is one), its post, f, phi, alpha, bias.
std::vector<Tensor> backward(const MHCSizes& s, const Params& params, const Write& before, const Saved& saved,
                             std::span<Tensor> dys) {
  const Tensor& x = saved.stream->x();
  const Tensor du = dys[0].contiguous(), dpost = dys[2].contiguous();
  const bool written = dys[1].defined();
  Tensor dx = room_for_dx(x, dys[1]);
  const Tensor dy = dys[1].contiguous();  // undefined where dx has its memory
  const auto like = [](const Tensor& t) { return t.defined() ? Tensor(t.shape(), t.dtype()) : Tensor(); };
  Tensor dphi = like(params.phi), dalpha = like(params.alpha), dbias = like(params.bias), df = like(before.f);
  Tensor dpost_before = before.f.defined() ? Tensor(lead_of(x).concat({s.n}), dx.dtype()) : Tensor();
  dispatch_float("ManifoldConstrainedHC", dx.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* dx_data = dx.mutable_data<T>();
    const T* dy_data = written && !dy.defined() ? dx_data : data_or_null<T>(dy);
    kernels::mhc_read_kernels<T>().vjp({.sizes = s,
                                        .params = params.kernel<T>(),
                                        .before = before.kernel<T>(s.n),
                                        .x = x.data<T>(),
                                        .z = saved.z.data<T>(),
                                        .r = saved.r.data<T>(),
                                        .maps = saved.maps.data<T>(),
                                        .dy = dy_data,
                                        .dh_post = data_or_null<T>(dpost),
                                        .du = data_or_null<T>(du),
                                        .dx = dx_data,
                                        .dphi = dphi.mutable_data<T>(),
                                        .dalpha = dalpha.mutable_data<T>(),
                                        .dbias = dbias.mutable_data<T>(),
                                        .dh_post_before = mutable_or_null<T>(dpost_before),
                                        .df_before = mutable_or_null<T>(df)});
  });
  return {dx, dpost_before, df, dphi, dalpha, dbias};
}

/// The view of the post maps [..., n] in maps [..., n (n + 2)]: all of the maps that the write has cotangents for.
Tensor post_of(const Tensor& maps, std::int64_t n) { return maps.slice(-1, n, 2 * n); }

}  // namespace

FusedStream::FusedStream(Var x, std::int64_t keep_every) : x_(std::move(x)), keep_every_(keep_every) {
  check_value(keep_every >= 1, "FusedStream: keep_every must be >= 1 but is {}", keep_every);
}

Var FusedStream::read(const FusedMhc& c) {
  check_params(x_.value(), c);
  const bool pending = f_.value().defined();
  check<Error>(pending || !maps_.defined(), "FusedStream: read() again without write()");
  const MHCSizes sizes = sizes_of(x_.value(), c);
  const Params params{c.phi.value().contiguous(), c.alpha.value().contiguous(), c.bias.value().contiguous()};
  const Tensor x = x_.value().contiguous();
  const Write before = pending ? Write{maps_, f_.value().contiguous()} : Write{};
  Forward out = forward(sizes, params, {before.maps, before.f, pending ? x : Tensor()}, x);
  const bool keep = !pending || kept_->distance() + 1 == keep_every_;
  kept_ = keep ? std::make_shared<KeptStream>(out.x) : std::make_shared<KeptStream>(kept_, before.maps, before.f);
  std::vector<Var> inputs{x_};
  if (pending) inputs.insert(inputs.end(), {post_, f_});
  inputs.insert(inputs.end(), {c.phi, c.alpha, c.bias});
  const std::vector<Var> results = record(
      pending ? "mhc_write_read" : "mhc_read", {out.u, out.x, post_of(out.maps, sizes.n)}, inputs,
      [sizes, params, before, saved = Saved{out.maps, out.z, out.r, kept_}](std::span<Tensor> dys, const Needs&) {
        std::vector<Tensor> dxs = backward(sizes, params, before, saved, dys);
        if (!before.f.defined()) dxs.erase(dxs.begin() + 1, dxs.begin() + 3);
        return dxs;
      });
  x_ = results[1];
  post_ = results[2];
  maps_ = out.maps;
  f_ = Var();
  return results[0];
}

void FusedStream::write(const Var& f) {
  check<Error>(maps_.defined(), "FusedStream: write() without read()");
  const Shape expected = x_.shape().without(-2);
  check_shape(f.shape() == expected, "ManifoldConstrainedHC: y must have shape {} to match x {} but has {}", expected,
              x_.shape(), f.shape());
  f_ = f;
}

Var FusedStream::streams() const {
  if (!maps_.defined()) return x_;
  check<Error>(f_.value().defined(), "FusedStream: streams() between read() and write()");
  const Write write{maps_, f_.value().contiguous()};
  const kernels::StreamSizes sizes = kernels::sizes_of(x_.shape());
  const Tensor y = fused_write(x_.value(), write.maps, write.f);
  return record("mhc_write", y, {x_, post_, f_}, [sizes, write](const Tensor& dy_in) {
    const Tensor dy = dy_in.contiguous();
    Tensor dpost = zeros(post_of(write.maps, sizes.n).shape(), dy.dtype()), df(write.f.shape(), dy.dtype());
    dispatch_float("ManifoldConstrainedHC", dy.dtype(), [&](auto zero) {
      using T = decltype(zero);
      const MHCWrite<T> w = write.kernel<T>(sizes.n);
      kernels::read_write_kernels<T>().vjp({.sizes = sizes,
                                            .h_post = w.h_post,
                                            .f = w.f,
                                            .dy = dy.data<T>(),
                                            .dh_post = {dpost.mutable_data<T>(), sizes.n},
                                            .df = df.mutable_data<T>()});
    });
    return std::vector{dy, dpost, df};
  });
}

}  // namespace braid::mhc
