#include <braid/mhc/ops/read_write.h>

#include <braid/autograd/ops.h>
#include <braid/autograd/ops/detail/bilinear.h>
#include <braid/mhc/kernels/read_write.h>
#include <braid/mhc/mixings/composed.h>
#include <braid/mhc/ops/detail/arguments.h>

namespace braid::mhc {
namespace {

using detail::lead_of, detail::stepped, kernels::StreamTensors;

/// Whether a map of shape `tail` for x is one for all tokens or one per token, which is what the kernels take.
bool fits(const Var& map, const Shape& tail, const Var& x) {
  return map.shape() == tail || map.shape() == lead_of(x.shape()).concat(tail);
}

void check_map(const char* op, const char* name, const Var& map, const Shape& tail, const Var& x) {
  check_shape(fits(map, tail, x), "{}: {} must have shape {} or {} to match x {} but has {}", op, name, tail,
              lead_of(x.shape()).concat(tail), x.shape(), map.shape());
  detail::check_map_dtype(op, name, map, x);
}

Tensor read(const Tensor& h_pre, const Tensor& x) {
  Tensor u(x.shape().without(-2), x.dtype());
  kernels::read_write_kernels().dispatch("read_streams", x.dtype(),
                                         [&](const auto& kernel) { kernel.read(h_pre, x, u); });
  return u;
}

/// The gradients of those of `in` that are given, in their order, as far as they are needed: of a read with cotangent
/// du and of a write with cotangent dy, undefined where there is none.
std::vector<Tensor> backward(const StreamTensors& in, const Tensor& read_cotangent, const Tensor& write_cotangent,
                             const Needs& needs) {
  const Tensor du = read_cotangent.contiguous(), dy = write_cotangent.contiguous();
  StreamTensors d;
  std::vector<Tensor*> given;
  for (const auto& [t, gradient] :
       {std::pair{&in.h_pre, &d.h_pre}, {&in.h_res, &d.h_res}, {&in.h_post, &d.h_post}, {&in.x, &d.x}, {&in.f, &d.f}}) {
    if (!t->defined()) continue;
    const bool is_map = t != &in.x && t != &in.f;  // the kernel adds to their gradients
    if (needs[given.size()]) *gradient = is_map ? zeros(t->shape(), t->dtype()) : detail::like(*t);
    given.push_back(gradient);
  }
  const DType dtype = (in.x.defined() ? in.x : dy).dtype();
  kernels::read_write_kernels().dispatch("write_streams", dtype,
                                         [&](const auto& kernel) { kernel.vjp(in, du, dy, d); });
  std::vector<Tensor> gradients;
  for (Tensor* gradient : given) gradients.push_back(std::move(*gradient));
  return gradients;
}

template <int kMapAxes>
std::vector<Tensor> lay_out(std::span<const Var> in) {
  return {stepped(in[0].value(), kMapAxes), in[1].value().contiguous()};
}

/// u = h_pre x
constexpr braid::detail::Bilinear kRead = {
    .op = "read_streams",
    .vjp_op = "read_streams_vjp",
    .left = 1,
    .lay_out = lay_out<1>,
    .forward = [](std::span<const Tensor> in) { return read(in[0], in[1]); },
    .vjp = [](std::span<const Tensor> in, const Tensor& du,
              const Needs& needs) { return backward({.h_pre = in[0], .x = in[1]}, du, {}, needs); },
};

/// y = h_res x + h_post f
constexpr braid::detail::Bilinear kWrite = {
    .op = "write_streams",
    .vjp_op = "write_streams_vjp",
    .left = 2,
    .lay_out =
        [](std::span<const Var> in) {
          return std::vector{stepped(in[0].value(), 2), stepped(in[1].value(), 1), in[2].value().contiguous(),
                             in[3].value().contiguous()};
        },
    .forward = [](std::span<const Tensor> in) { return detail::write_streams(in[0], in[1], in[2], in[3]); },
    .vjp =
        [](std::span<const Tensor> in, const Tensor& dy, const Needs& needs) {
          return backward({.h_res = in[0], .h_post = in[1], .x = in[2], .f = in[3]}, {}, dy, needs);
        },
};

/// y = map x
constexpr braid::detail::Bilinear kMix = {
    .op = "mix_streams",
    .vjp_op = "mix_streams_vjp",
    .left = 1,
    .lay_out = lay_out<2>,
    .forward = [](std::span<const Tensor> in) { return detail::write_streams(in[0], {}, in[1], {}); },
    .vjp = [](std::span<const Tensor> in, const Tensor& dy,
              const Needs& needs) { return backward({.h_res = in[0], .x = in[1]}, {}, dy, needs); },
};

/// `H_res x + H_post^T f` of an f that fits.
Var write_deferred(const LayerRead& read, const Var& f) {
  const Var &h_post = read.maps.h_post, &h_res = read.maps.h_res;
  const StreamTensors in{.h_post = stepped(h_post.value(), 1), .f = f.value().contiguous()};
  const auto vjp = [in](std::span<Tensor> dys, const Needs& needs) {
    const std::vector<Tensor> d = backward(in, {}, dys[0], {needs[0], needs[2]});
    return std::vector{d[0], dys[0], d[1]};
  };
  const Tensor y = detail::write_streams(h_res.value(), in.h_post, read.x.value(), in.f);
  return record("write_streams", {y}, std::vector{h_post, read.x, f}, vjp, Deferral{.input = 1, .output = 0}).front();
}

}  // namespace

Var read_streams(const Var& h_pre, const Var& x) {
  detail::check_streams("read_streams", x);
  check_shape(h_pre.rank() >= 1 && h_pre.size(-1) == x.size(-2),
              "read_streams: h_pre must have one entry for each stream of x {} but has shape {}", x.shape(),
              h_pre.shape());
  detail::check_map_dtype("read_streams", "h_pre", h_pre, x);
  if (!composed(/*has_rule=*/x.dtype() != DType::bf16) && fits(h_pre, {x.size(-2)}, x))
    return braid::detail::bilinear(kRead, std::vector{h_pre, x});
  return cast(sum(expand_dims(h_pre, -1) * cast(x, h_pre.dtype()), {-2}), x.dtype());
}

Var write_streams(const Var& h_res, const Var& h_post, const Var& x, const Var& f) {
  detail::check_streams("write_streams", x);
  const std::int64_t n = x.size(-2);
  check_shape(h_res.rank() >= 2 && h_res.size(-1) == n && h_res.size(-2) == n,
              "write_streams: h_res must have shape [..., {}, {}] to match x {} but has {}", n, n, x.shape(),
              h_res.shape());
  check_shape(h_post.rank() >= 1 && h_post.size(-1) == n,
              "write_streams: h_post must have shape [..., {}] to match x {} but has {}", n, x.shape(), h_post.shape());
  detail::check_layer_output("write_streams", f, x);
  detail::check_map_dtype("write_streams", "h_res", h_res, x);
  detail::check_map_dtype("write_streams", "h_post", h_post, x);
  if (!composed(/*has_rule=*/x.dtype() != DType::bf16) && fits(h_res, {n, n}, x) && fits(h_post, {n}, x))
    return braid::detail::bilinear(kWrite, std::vector{h_res, h_post, x, f});
  const Var mixed = matmul(h_res, cast(x, h_res.dtype()));
  return cast(mixed + expand_dims(h_post, -1) * cast(expand_dims(f, -2), h_post.dtype()), x.dtype());
}

Var mix_streams(const Var& map, const Var& x) {
  detail::check_streams("mix_streams", x);
  const std::int64_t n = x.size(-2);
  check_shape(map.rank() >= 2 && map.size(-1) == n,
              "mix_streams: map must have shape [..., m, {}] to match x {} but has {}", n, x.shape(), map.shape());
  detail::check_map_dtype("mix_streams", "map", map, x);
  if (!composed(/*has_rule=*/x.dtype() != DType::bf16) && fits(map, {map.size(-2), n}, x))
    return braid::detail::bilinear(kMix, std::vector{map, x});
  return cast(matmul(map, cast(x, map.dtype())), x.dtype());
}

LayerRead read_maps(const StreamMaps& maps, StreamState& streams) {
  const Var& x = streams.settle();
  if (composed()) return {.u = read_streams(maps.h_pre, x), .maps = maps, .x = x, .deferred = false};
  detail::check_streams("read_streams", x);
  const std::int64_t n = x.size(-2);
  check_map("read_streams", "h_pre", maps.h_pre, {n}, x);
  check_map("read_streams", "h_post", maps.h_post, {n}, x);
  check_map("read_streams", "h_res", maps.h_res, {n, n}, x);
  const StreamTensors in{
      .h_pre = stepped(maps.h_pre.value(), 1), .h_res = stepped(maps.h_res.value(), 2), .x = x.value().contiguous()};
  const std::vector<Var> out =
      record("read_streams", {read(in.h_pre, in.x), in.x, in.h_res}, std::vector{maps.h_pre, maps.h_res, x},
             [in](std::span<const Tensor> dys, const Needs& needs) { return backward(in, dys[0], dys[1], needs); });
  return {.u = out[0], .maps = {in.h_pre, maps.h_post, out[2], maps.gated, maps.post_magnitude}, .x = out[1]};
}

Var StreamState::value() const {
  if (!reading()) return last.x;
  check<Error>(pending(), "Streams: read() must be followed by write()");
  return last.deferred ? write_deferred(last, f) : write_streams(last.maps.h_res, last.maps.h_post, last.x, f);
}

const Var& StreamState::settle() & {
  if (reading()) last = {.u = {}, .maps = {}, .x = value()};
  f = Var();
  return last.x;
}

void check_streams(const char* op, const Shape& x, std::int64_t n, std::int64_t channels) {
  check_shape(x.rank() >= 2 && x[-2] == n && x[-1] == channels,
              "{}: x must have shape [..., {}, {}] (streams, channels) but has {}", op, n, channels, x);
}

namespace detail {

Tensor write_streams(const Tensor& h_res, const Tensor& h_post, const Tensor& x, const Tensor& f) {
  Tensor y(x.shape().with(-2, h_res.size(-2)), x.dtype());
  kernels::read_write_kernels().dispatch("write_streams", x.dtype(),
                                         [&](const auto& kernel) { kernel.write(h_res, h_post, x, f, y); });
  return y;
}

void check_streams(const char* op, const Var& x) {
  check_shape(x.rank() >= 2, "{}: x must have shape [..., n, C] but has {}", op, x.shape());
  check_floating(op, x.dtype());
}

void check_layer_output(const char* op, const Var& f, const Var& x) {
  const Shape expected = x.shape().without(-2);
  check_shape(f.shape() == expected, "{}: f must have shape {} to match x {} but has {}", op, expected, x.shape(),
              f.shape());
  check_same_dtype(op, f.value(), x.value());
}

}  // namespace detail
}  // namespace braid::mhc
