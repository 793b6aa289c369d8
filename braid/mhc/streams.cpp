#include <braid/mhc/streams.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/broadcast_to.h>
#include <braid/autograd/ops/matmul.h>
#include <braid/autograd/ops/reshape.h>
#include <braid/autograd/ops/sum.h>
#include <braid/mhc/fused_streams.h>

namespace braid::mhc {

Var expand_streams(const Var& x, std::int64_t n) {
  check_value(n >= 1, "expand_streams: n must be >= 1 but is {}", n);
  check_shape(x.rank() >= 1, "expand_streams: x must have shape [..., C] but is a scalar");
  return broadcast_to(expand_dims(x, -2), x.shape().inserted(x.rank() - 1, n));
}

Var reduce_streams(const Var& x, StreamReduction how) {
  check_shape(x.rank() >= 2, "reduce_streams: x must have shape [..., n, C] but has {}", x.shape());
  return how == StreamReduction::mean ? mean(x, {-2}) : sum(x, {-2});
}

Var read_streams(const Var& h_pre, const Var& x, Path path) {
  check_shape(x.rank() >= 2 && h_pre.rank() >= 1 && h_pre.size(-1) == x.size(-2),
              "read_streams: h_pre must have one entry for each stream of x {} but has shape {}", x.shape(),
              h_pre.shape());
  if (choose_path(path) == Path::fused && fits_streams(h_pre, {x.size(-2)}, x)) return stream_read(h_pre, x);
  return sum(expand_dims(h_pre, -1) * x, {-2});
}

Var write_streams(const Var& h_res, const Var& h_post, const Var& x, const Var& y, Path path) {
  check_shape(x.rank() >= 2, "write_streams: x must have shape [..., n, C] but has {}", x.shape());
  const std::int64_t n = x.size(-2);
  check_shape(h_res.rank() >= 2 && h_res.size(-1) == n && h_res.size(-2) == n,
              "write_streams: h_res must have shape [..., {}, {}] to match x {} but has {}", n, n, x.shape(),
              h_res.shape());
  check_shape(h_post.rank() >= 1 && h_post.size(-1) == n,
              "write_streams: h_post must have shape [..., {}] to match x {} but has {}", n, x.shape(), h_post.shape());
  const Shape expected = x.shape().without(-2);
  check_shape(y.shape() == expected, "write_streams: y must have shape {} to match x {} but has {}", expected,
              x.shape(), y.shape());
  const bool fits = fits_streams(h_res, {n, n}, x) && fits_streams(h_post, {n}, x);
  if (choose_path(path) == Path::fused && fits) return stream_write(h_res, h_post, x, y);
  return matmul(h_res, x) + expand_dims(h_post, -1) * expand_dims(y, -2);
}

void check_streams(const char* op, const Shape& x, std::int64_t n, std::int64_t channels) {
  check_shape(x.rank() >= 2 && x[-2] == n && x[-1] == channels,
              "{}: x must have shape [..., {}, {}] (streams, channels) but has {}", op, n, channels, x);
}

}  // namespace braid::mhc
