#include <braid/mhc/ops/read_write.h>

#include <braid/mhc/kernels/read_write.h>
#include <braid/mhc/kernels/tiles.h>

namespace braid::mhc {
namespace {

using kernels::data_or_null, kernels::mutable_or_null, kernels::sizes_of, kernels::StreamMap, kernels::StreamSizes;

Shape lead_of(const Shape& x) { return x.axes(0, x.rank() - 2); }

/// [n] is one map for all tokens unless x itself is one token, where it does not matter.
template <class T>
StreamMap<const T> map_of(const Tensor& map, std::int64_t size) {
  if (!map.defined()) return {};
  return {map.data<T>(), map.numel() == size ? 0 : size};
}

template <class T>
StreamMap<T> gradient_of(Tensor& map, std::int64_t size) {
  if (!map.defined()) return {};
  return {map.mutable_data<T>(), map.numel() == size ? 0 : size};
}

void check_streams_of(const char* op, const Var& x) {
  check_shape(x.rank() >= 2, "{}: x must have shape [..., n, C] but has {}", op, x.shape());
}

void check_map(const char* op, const char* name, const Var& map, const Shape& tail, const Var& x) {
  check_shape(fits_streams(map, tail, x), "{}: {} must have shape {} or {} to match x {} but has {}", op, name, tail,
              lead_of(x.shape()).concat(tail), x.shape(), map.shape());
  check_same_dtype(op, map.value(), x.value());
}

void check_layer_output(const char* op, const Var& f, const Var& x) {
  const Shape expected = x.shape().without(-2);
  check_shape(f.shape() == expected, "{}: f must have shape {} to match x {} but has {}", op, expected, x.shape(),
              f.shape());
  check_same_dtype(op, f.value(), x.value());
}

Tensor read(const Tensor& h_pre, const Tensor& x) {
  const StreamSizes s = sizes_of(x.shape());
  Tensor u(x.shape().without(-2), x.dtype());
  dispatch_float("stream_read", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernels::read_write_kernels<T>().read({s, map_of<T>(h_pre, s.n), x.data<T>(), u.mutable_data<T>()});
  });
  return u;
}

Tensor write(const Tensor& h_res, const Tensor& h_post, const Tensor& x, const Tensor& f) {
  const StreamSizes s = sizes_of(x.shape());
  Tensor y(x.shape(), x.dtype());
  dispatch_float("stream_write", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    kernels::read_write_kernels<T>().write(
        {s, map_of<T>(h_res, s.n * s.n), map_of<T>(h_post, s.n), x.data<T>(), f.data<T>(), y.mutable_data<T>()});
  });
  return y;
}

/// What the vjps share: inputs that are at hand, cotangents that came, and undefined for all else.
struct StreamTensors {
  Tensor h_pre = {}, h_res = {}, h_post = {}, x = {}, f = {};
};

struct Cotangents {
  Tensor du = {}, dy = {};
};

struct Wanted {
  bool h_pre = false, h_res = false, h_post = false, x = false, f = false;
};

/// Gradients with the names of what they belong to.
StreamTensors backward(const StreamTensors& in, const Shape& shape, const Cotangents& cotangents,
                       const Wanted& wanted) {
  const StreamSizes s = sizes_of(shape);
  const Tensor du = cotangents.du.contiguous(), dy = cotangents.dy.contiguous();
  const DType dtype = du.defined() ? du.dtype() : dy.dtype();
  const auto sums = [&](bool want, const Tensor& map) { return want ? zeros(map.shape(), dtype) : Tensor(); };
  StreamTensors d{sums(wanted.h_pre, in.h_pre), sums(wanted.h_res, in.h_res), sums(wanted.h_post, in.h_post),
                  wanted.x ? Tensor(shape, dtype) : Tensor(), wanted.f ? Tensor(shape.without(-2), dtype) : Tensor()};
  dispatch_float("stream_vjp", dtype, [&](auto zero) {
    using T = decltype(zero);
    kernels::read_write_kernels<T>().vjp({s, map_of<T>(in.h_pre, s.n), map_of<T>(in.h_res, s.n * s.n),
                                          map_of<T>(in.h_post, s.n), data_or_null<T>(in.x), data_or_null<T>(in.f),
                                          data_or_null<T>(du), data_or_null<T>(dy), gradient_of<T>(d.h_pre, s.n),
                                          gradient_of<T>(d.h_res, s.n * s.n), gradient_of<T>(d.h_post, s.n),
                                          mutable_or_null<T>(d.x), mutable_or_null<T>(d.f)});
  });
  return d;
}

}  // namespace

bool fits_streams(const Var& map, const Shape& tail, const Var& x) {
  return map.shape() == tail || map.shape() == lead_of(x.shape()).concat(tail);
}

Var stream_read(const Var& h_pre, const Var& x) {
  check_streams_of("stream_read", x);
  check_map("stream_read", "h_pre", h_pre, {x.size(-2)}, x);
  const StreamTensors in{.h_pre = h_pre.value().contiguous(), .x = x.value().contiguous()};
  return record("stream_read", read(in.h_pre, in.x), {h_pre, x}, [in](const Tensor& du, const Needs& needs) {
    const StreamTensors d = backward(in, in.x.shape(), {.du = du}, {.h_pre = needs[0], .x = needs[1]});
    return std::vector{d.h_pre, d.x};
  });
}

Var stream_write(const Var& h_res, const Var& h_post, const Var& x, const Var& f) {
  check_streams_of("stream_write", x);
  const std::int64_t n = x.size(-2);
  check_map("stream_write", "h_res", h_res, {n, n}, x);
  check_map("stream_write", "h_post", h_post, {n}, x);
  check_layer_output("stream_write", f, x);
  const StreamTensors in{.h_res = h_res.value().contiguous(),
                         .h_post = h_post.value().contiguous(),
                         .x = x.value().contiguous(),
                         .f = f.value().contiguous()};
  return record("stream_write", write(in.h_res, in.h_post, in.x, in.f), {h_res, h_post, x, f},
                [in](const Tensor& dy, const Needs& needs) {
                  const StreamTensors d =
                      backward(in, in.x.shape(), {.dy = dy},
                               {.h_res = needs[0], .h_post = needs[1], .x = needs[2], .f = needs[3]});
                  return std::vector{d.h_res, d.h_post, d.x, d.f};
                });
}

LayerInput open_layer(const Var& h_pre, const Var& h_post, const Var& h_res, const Var& x) {
  check_streams_of("open_layer", x);
  const std::int64_t n = x.size(-2);
  check_map("open_layer", "h_pre", h_pre, {n}, x);
  check_map("open_layer", "h_post", h_post, {n}, x);
  check_map("open_layer", "h_res", h_res, {n, n}, x);
  const StreamTensors in{
      .h_pre = h_pre.value().contiguous(), .h_res = h_res.value().contiguous(), .x = x.value().contiguous()};
  const std::vector<Var> out = record("open_layer", {read(in.h_pre, in.x), in.x}, std::vector{h_pre, h_res, x},
                                      [in](std::span<const Tensor> dys, const Needs& needs) {
                                        const StreamTensors d =
                                            backward(in, in.x.shape(), {.du = dys[0], .dy = dys[1]},
                                                     {.h_pre = needs[0], .h_res = needs[1], .x = needs[2]});
                                        return std::vector{d.h_pre, d.h_res, d.x};
                                      });
  return {out[0], PendingWrite(in.h_res, h_post, out[1])};
}

Var PendingWrite::operator()(const Var& f) const {
  check_layer_output("close_layer", f, x_);
  const Tensor x = x_.value().contiguous();
  const StreamTensors in{.h_post = h_post_.value().contiguous(), .f = f.value().contiguous()};
  return record("close_layer", write(h_res_, in.h_post, x, in.f), {h_post_, x_, f},
                [in, shape = x.shape()](const Tensor& dy, const Needs& needs) {
                  const StreamTensors d = backward(in, shape, {.dy = dy}, {.h_post = needs[0], .f = needs[2]});
                  return std::vector{d.h_post, dy, d.f};
                });
}

}  // namespace braid::mhc
