#include <braid/mhc/ops/mhc_read.h>

#include <braid/core/reduce.h>
#include <braid/mhc/detail/arguments.h>
#include <braid/mhc/detail/kept_streams.h>
#include <braid/mhc/kernels/mhc_read.h>
#include <braid/mhc/kernels/tiles.h>

namespace braid::mhc::detail {
namespace {

using kernels::MHCSizes;

constexpr const char* kOp = "ManifoldConstrainedHC";

struct Params {
  Tensor phi, alpha, bias;

  template <class T>
  operator kernels::MHCParams<T>() const {
    return {In{phi}, In{alpha}, In{bias}};
  }
};

/// The write that is owed, with stepped() maps; undefined when there is none. Backward passes need no x.
struct Write {
  Tensor x, h_post, h_res, f;  // [..., n, C], [..., n], [..., n, n], [..., C]

  template <class T>
  operator kernels::MHCWrite<T>() const {
    return {In{x}, MapIn{h_post, 1}, MapIn{h_res, 2}, In{f}};
  }
  Write without_x() const { return {{}, h_post, h_res, f}; }
};

MHCSizes sizes_of(const Tensor& x, const MHCMaps& m) {
  return {lead_of(x.shape()).numel(), x.size(-2), x.size(-1), m.iterations, m.rows_last, m.eps};
}

void check_params(const MHCMaps& m, const Var& x) {
  check_streams(kOp, x);
  const std::int64_t n = x.size(-2), width = n * x.size(-1), columns = n * (n + 2);
  check_argument(kOp, "phi", m.phi, {width, columns}, x);
  check_argument(kOp, "alpha", m.alpha, {3}, x);
  check_argument(kOp, "bias", m.bias, {columns}, x);
}

/// Rows of maps are pre [n], post [n], res [n, n]: [..., n + 2, n].
struct Forward {
  Tensor u, x, maps, z, r;

  Tensor h_pre() const { return maps.select(-2, 0); }
  Tensor h_post() const { return maps.select(-2, 1); }
  Tensor h_res() const { return maps.slice(-2, 2, maps.size(-2)); }
};

/// On `x`, or on what the write makes of its own.
Forward forward(const MHCSizes& s, const Params& p, const Write& before, const Tensor& x) {
  const Tensor& streams = before.f.defined() ? before.x : x;
  const auto make = [&](const Shape& tail) { return Tensor(lead_of(streams.shape()).concat(tail), streams.dtype()); };
  Tensor written = before.f.defined() ? make({s.n, s.channels}) : Tensor();
  Forward out{make({s.channels}), {}, make({s.n + 2, s.n}), make({s.maps()}), make({})};
  kernels::mhc_read_kernels().dispatch(kOp, streams.dtype(), [&](const auto& kernel) {
    kernel.read({s, p, before, In{x}, Out{written}, Out{out.z}, Out{out.r}, Out{out.maps}, Out{out.u}});
  });
  out.x = before.f.defined() ? std::move(written) : x;
  return out;
}

/// What the backward pass needs again.
struct Saved {
  Tensor maps, z, r;
  std::shared_ptr<KeptStreams> streams;
};

/// The memory for dx: that of dy, which is used but once, if the kernel can work in place and nobody else holds it.
Tensor memory_for_dx(const Tensor& x, Tensor& dy) {
  const bool in_place = dy.defined() && dy.unshared() && dy.is_contiguous() && x.size(-2) <= 4;
  return in_place ? std::move(dy) : Tensor(x.shape(), x.dtype());
}

/// The cotangent of h_post from that per token.
Tensor summed_like(const Tensor& h_post, const Tensor& per_token) {
  if (!h_post.defined() || h_post.rank() == per_token.rank()) return per_token;
  return reduce_sum(per_token.reshape({-1, h_post.size(0)}), {0});
}

/// Cotangents of x (that of the write before, when there is one), its h_post and f, phi, alpha, bias.
std::vector<Tensor> backward(const MHCSizes& s, const Params& p, const Write& before, const Saved& saved,
                             std::span<Tensor> dys) {
  const Tensor& x = saved.streams->x();
  const Tensor du = dys[0].contiguous(), dh_post = dys[2].contiguous();
  const bool written = dys[1].defined();
  Tensor dx = memory_for_dx(x, dys[1]);
  const Tensor dy = dys[1].contiguous();  // undefined where dx has its memory
  Tensor dphi = like(p.phi), dalpha = like(p.alpha), dbias = like(p.bias), df = like(before.f);
  Tensor dh_post_before = before.f.defined() ? Tensor(lead_of(x.shape()).concat({s.n}), dx.dtype()) : Tensor();
  const Tensor& dy_in = written && !dy.defined() ? dx : dy;
  kernels::mhc_read_kernels().dispatch(kOp, dx.dtype(), [&](const auto& kernel) {
    kernel.vjp({s, p, before, In{x}, In{saved.z}, In{saved.r}, In{saved.maps}, In{dy_in}, In{dh_post}, In{du}, Out{dx},
                Out{dphi}, Out{dalpha}, Out{dbias}, Out{dh_post_before}, Out{df}});
  });
  return {dx, summed_like(before.h_post, dh_post_before), df, dphi, dalpha, dbias};
}

Params params_of(const MHCMaps& m) {
  return {m.phi.value().contiguous(), m.alpha.value().contiguous(), m.bias.value().contiguous()};
}

/// `inputs` are what stands before phi, alpha and bias: x, and h_post and f of the write before when there is one.
LayerRead record_read(const MHCMaps& m, const MHCSizes& sizes, const Params& params, const Write& before,
                      const Forward& out, std::shared_ptr<KeptStreams> kept, std::vector<Var> inputs) {
  inputs.insert(inputs.end(), {m.phi, m.alpha, m.bias});
  const std::vector<Var> results =
      record(before.f.defined() ? "mhc_write_read" : "mhc_read", {out.u, out.x, out.h_post()}, inputs,
             [sizes, params, before = before.without_x(), saved = Saved{out.maps, out.z, out.r, kept}](
                 std::span<Tensor> dys, const Needs&) {
               std::vector<Tensor> dxs = backward(sizes, params, before, saved, dys);
               if (!before.f.defined()) dxs.erase(dxs.begin() + 1, dxs.begin() + 3);
               return dxs;
             });
  return {results[0], {out.h_pre(), results[2], out.h_res()}, results[1], std::move(kept)};
}

}  // namespace

LayerRead mhc_read(const MHCMaps& m, const Var& x) {
  check_params(m, x);
  const MHCSizes sizes = sizes_of(x.value(), m);
  const Params params = params_of(m);
  const Forward out = forward(sizes, params, {}, x.value().contiguous());
  return record_read(m, sizes, params, {}, out, std::make_shared<KeptStreams>(out.x), {x});
}

LayerRead mhc_read(const MHCMaps& m, const LayerRead& before, const Var& f, std::int64_t keep_every) {
  check_params(m, before.x);
  const MHCSizes sizes = sizes_of(before.x.value(), m);
  const Params params = params_of(m);
  const Write write{before.x.value(), stepped(before.maps.h_post.value(), 1), before.maps.h_res.value(),
                    f.value().contiguous()};
  const Forward out = forward(sizes, params, write, {});
  const bool keep = before.kept == nullptr || before.kept->distance() + 1 == keep_every;
  auto kept = keep ? std::make_shared<KeptStreams>(out.x)
                   : std::make_shared<KeptStreams>(before.kept, write.h_res, write.h_post, write.f);
  return record_read(m, sizes, params, write, out, std::move(kept), {before.x, before.maps.h_post, f});
}

}  // namespace braid::mhc::detail
