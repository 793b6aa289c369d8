#include <braid/mhc/ops/mhc_read.h>

#include <algorithm>
#include <iterator>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/cast.h>
#include <braid/autograd/ops/matmul.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/sigmoid.h>
#include <braid/autograd/ops/slice.h>
#include <braid/autograd/ops/sqrt.h>
#include <braid/autograd/ops/sum.h>
#include <braid/core/reduce.h>
#include <braid/mhc/detail/arguments.h>
#include <braid/mhc/detail/kept_streams.h>
#include <braid/mhc/kernels/mhc_read.h>
#include <braid/mhc/kernels/tiles.h>
#include <braid/mhc/mixings/family.h>

namespace braid::mhc::detail {
namespace {

using kernels::MHCSizes;

constexpr const char* kOp = "mhc_read";

struct Params {
  braid::kernels::Tables<mixings::Kernels> mixing;
  Tensor phi, alpha, bias;

  template <class T>
  operator kernels::MHCParams<T>() const {
    return {mixing.of<T>(), In{phi}, In{alpha}, In{bias}};
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
  return {lead_of(x.shape()).numel(),
          x.size(-2),
          x.size(-1),
          mixings::problem_of(m.mixing),
          m.reads_only,
          m.eps,
          m.pre_eps,
          m.post_eps,
          m.post_magnitude};
}

void check_params(const MHCMaps& m, const Var& x) {
  check_streams(kOp, x);
  check_shape(x.size(-2) == m.mixing.n(), "{}: x must have shape [..., {}, C] to match the mixing but has {}", kOp,
              m.mixing.n(), x.shape());
  check_argument(kOp, "phi", m.phi, {m.mixing.n() * x.size(-1), m.columns()}, x);
  check_argument(kOp, "alpha", m.alpha, {m.groups()}, x);
  check_argument(kOp, "bias", m.bias, {m.columns()}, x);
}

/// Rows of maps are pre [n], post [n], res [n, n]: [..., n + 2, n].
struct Forward {
  Tensor u, x, maps, z, r;

  Tensor h_pre() const { return maps.select(-2, 0); }
  Tensor h_post() const { return maps.select(-2, 1); }
  Tensor h_res() const { return maps.slice(-2, 2, maps.size(-2)); }
};

/// On `x`, or on what the write makes of its own.
Forward forward(const MHCSizes& s, const Params& p, const Write& before, const Tensor& pre, const Tensor& x) {
  const Tensor& streams = before.f.defined() ? before.x : x;
  const auto make = [&](const Shape& tail, DType dtype) {
    return Tensor(lead_of(streams.shape()).concat(tail), dtype);
  };
  const DType stored = streams.dtype(), computed = compute_dtype(stored);
  Tensor written = before.f.defined() ? make({s.n, s.channels}, stored) : Tensor();
  Forward out{make({s.channels}, stored),
              {},
              make({s.n + 2, s.n}, computed),
              make({s.columns()}, computed),
              make({}, computed)};
  kernels::mhc_read_kernels().dispatch(kOp, streams.dtype(), [&](const auto& kernel) {
    kernel.read({s, p, before, MapIn{pre, 1}, In{x}, Out{written}, Out{out.z}, Out{out.r}, Out{out.maps}, Out{out.u}});
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

/// The cotangent of a map from that per token.
Tensor summed_like(const Tensor& map, const Tensor& per_token) {
  if (!map.defined() || map.rank() == per_token.rank()) return per_token;
  return reduce_sum(per_token.reshape({-1, map.size(0)}), {0});
}

/// Cotangents of x (that of the write before, when there is one), its h_post and f, pre, phi, alpha, bias; undefined
/// for what was not given.
std::vector<Tensor> backward(const MHCSizes& s, const Params& p, const Write& before, const Tensor& pre,
                             const Saved& saved, std::span<Tensor> dys) {
  const Tensor& x = saved.streams->x();
  const Tensor du = dys[0].contiguous(), dh_post = dys[2].contiguous(), dh_pre = dys[4].contiguous();
  const bool written = dys[1].defined();
  Tensor dx = memory_for_dx(x, dys[1]);
  const Tensor dy = dys[1].contiguous();  // undefined where dx has its memory
  const Tensor& dy_in = written && !dy.defined() ? dx : dy;
  const auto per_token = [&](const Tensor& map) {
    return map.defined() ? Tensor(lead_of(x.shape()).concat({s.n}), map.dtype()) : Tensor();
  };
  Tensor dphi = like(p.phi), dalpha = like(p.alpha), dbias = like(p.bias), df = like(before.f),
         dh_post_before = per_token(before.h_post), dpre = per_token(pre);
  kernels::mhc_read_kernels().dispatch(kOp, dx.dtype(), [&](const auto& kernel) {
    kernel.vjp({s, p, before, MapIn{pre, 1}, In{x}, In{saved.z}, In{saved.r}, In{saved.maps}, In{dy_in}, In{du},
                In{dh_pre}, In{dh_post}, Out{dx}, Out{dpre}, Out{dphi}, Out{dalpha}, Out{dbias}, Out{dh_post_before},
                Out{df}});
  });
  return {dx, summed_like(before.h_post, dh_post_before), df, summed_like(pre, dpre), dphi, dalpha, dbias};
}

/// `x` or, with a write that is owed, `before` and f.
LayerRead read(const MHCMaps& m, const Var& x, const LayerRead* before, const Var& f, const Var& pre,
               std::int64_t keep_every) {
  check_params(m, x);
  if (pre.value().defined() && pre.rank() > 1)
    check_argument(kOp, "pre", pre, lead_of(x.shape()).concat({m.mixing.n()}), x);
  else if (pre.value().defined())
    check_argument(kOp, "pre", pre, {m.mixing.n()}, x);
  const MHCSizes sizes = sizes_of(x.value(), m);
  const Params params{m.mixing.family().kernels(), m.phi.value().contiguous(), m.alpha.value().contiguous(),
                      m.bias.value().contiguous()};
  const Tensor read_by = pre.value().defined() ? stepped(pre.value(), 1) : Tensor();
  const Write write = before == nullptr ? Write{}
                                        : Write{x.value(), stepped(before->maps.h_post.value(), 1),
                                                before->maps.h_res.value(), f.value().contiguous()};
  const Forward out = forward(sizes, params, write, read_by, before == nullptr ? x.value().contiguous() : Tensor());
  const bool keep = before == nullptr || before->kept == nullptr || before->kept->distance() + 1 == keep_every;
  auto kept = keep ? std::make_shared<KeptStreams>(out.x)
                   : std::make_shared<KeptStreams>(before->kept, write.h_res, write.h_post, write.f);
  const Var none;
  const std::vector<Var> all{x, before == nullptr ? none : before->maps.h_post, f, pre, m.phi, m.alpha, m.bias};
  std::vector<Var> inputs;
  std::ranges::copy_if(all, std::back_inserter(inputs), [](const Var& v) { return v.value().defined(); });
  const auto vjp = [sizes, params, before = write.without_x(), read_by, saved = Saved{out.maps, out.z, out.r, kept}](
                       std::span<Tensor> dys, const Needs&) {
    std::vector<Tensor> dxs = backward(sizes, params, before, read_by, saved, dys);
    std::erase_if(dxs, [](const Tensor& t) { return !t.defined(); });
    return dxs;
  };
  const std::vector<Tensor> outputs{out.u, out.x, out.h_post(), out.h_res(), out.h_pre()};
  const std::vector<Var> results =
      before == nullptr ? record("mhc_read", outputs, inputs, vjp)
                        : record("mhc_write_read", outputs, inputs, vjp, Deferral{.input = 0, .output = 1});
  const Var h_pre = pre.value().defined() ? results[4] : Var(out.h_pre());
  return {results[0], {h_pre, results[2], results[3], true, m.post_magnitude}, results[1], std::move(kept)};
}

}  // namespace

Var normalized_products(const MHCMaps& m, const Var& x) {
  check_params(m, x);
  const Shape lead = lead_of(x.shape());
  const Var flat = cast(reshape(x, {lead.numel(), m.phi.size(0)}), m.phi.dtype());
  const Var h = matmul(flat, m.phi) / sqrt(mean(flat * flat, {-1}, true) + m.eps);
  return reshape(h, lead.concat({m.columns()}));
}

LayerRead mhc_read(const MHCMaps& m, const Var& x, const Var& pre) { return read(m, x, nullptr, {}, pre, 1); }

LayerRead mhc_read(const MHCMaps& m, const LayerRead& before, const Var& f, std::int64_t keep_every, const Var& pre) {
  return read(m, before.x, &before, f, pre, keep_every);
}

}  // namespace braid::mhc::detail

namespace braid::mhc {

StreamMaps compose_maps(const MHCMaps& m, const Var& x) {
  const std::int64_t n = m.mixing.n();
  const Var h = detail::normalized_products(m, x);  // alpha = 1
  const auto logits = [&](std::int64_t map, std::int64_t begin, std::int64_t end) {
    return slice(m.alpha, 0, map, map + 1) * slice(h, -1, begin, end) + slice(m.bias, 0, begin, end);
  };
  const auto none = [&](std::int64_t columns) -> Var {
    return zeros(detail::lead_of(x.shape()).concat({columns}), m.phi.dtype());
  };
  return {sigmoid(logits(0, 0, n)) + m.pre_eps,
          m.reads_only ? none(n) : m.post_magnitude * sigmoid(logits(1, n, 2 * n)) + m.post_eps,
          m.mixing(m.mixing.logits() > 0 ? logits(m.groups() - 1, m.gates(), m.columns()) : none(0), Path::reference),
          true, m.post_magnitude};
}

}  // namespace braid::mhc
