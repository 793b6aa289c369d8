#pragma once
#include <utility>

#include <braid/autograd/tape.h>

namespace braid::mhc {

// Reading and writing streams x [..., n, C] in one pass each, forward and vjp. A map is one for all tokens ([n], [n,
// n]) or one a token ([..., n], [..., n, n]). The composed twins are read_streams and write_streams on Path::reference.

/// `u = sum_i h_pre_i x_i`, [..., C]. Throws ShapeError unless h_pre fits x.
Var stream_read(const Var& h_pre, const Var& x);

/// `y_i = sum_j h_res_ij x_j + h_post_i f`, f [..., C] -> [..., n, C]. Throws ShapeError unless all fit x.
Var stream_write(const Var& h_res, const Var& h_post, const Var& x, const Var& f);

/// Whether a map of shape `tail` for x is one for all tokens or one a token, which is what the above take.
bool fits_streams(const Var& map, const Shape& tail, const Var& x);

/// What is left to do once a layer has read its input: out = H_res x + H_post^T f.
///
/// Its vjp leaves x and H_res to that of the read, which has both at hand and adds all terms of dx in one pass: on the
/// tape, the cotangent of this x is that of out. Hence x comes from a read that knows, and goes nowhere else.
class PendingWrite {
 public:
  /// h_res [n, n] or [..., n, n], h_post [n] or [..., n], x [..., n, C].
  PendingWrite(Tensor h_res, Var h_post, Var x)
      : h_res_(std::move(h_res)), h_post_(std::move(h_post)), x_(std::move(x)) {}

  /// The streams behind a layer with output f [..., C]; at most once. Throws ShapeError unless f fits.
  Var operator()(const Var& f) const;

 private:
  Tensor h_res_;
  Var h_post_, x_;
};

/// The input of a layer on streams, and what to do with its output.
struct LayerInput {
  Var u;  // [..., C]
  PendingWrite write;
};

/// Both ends of `H_res x + H_post^T layer(H_pre x)`, in as few passes as reading and writing alone:
///
///     const auto [u, write] = open_layer(h_pre, h_post, h_res, x);
///     return write(layer(u));
///
/// Throws ShapeError unless the maps fit x.
LayerInput open_layer(const Var& h_pre, const Var& h_post, const Var& h_res, const Var& x);

}  // namespace braid::mhc
