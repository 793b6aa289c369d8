#pragma once
#include <cstdint>

namespace braid::mhc::kernels {

/// One manifold-constrained hyper-connection (arXiv:2512.24880) over a batch of tokens. Its maps stand in one row of
/// m = n (n + 2) numbers a token, in the order of phi's columns: pre [n], post [n], res [n, n].
struct MhcSizes {
  std::int64_t tokens, n, channels;
  int iterations;
  bool rows_last;
  double eps;

  std::int64_t maps() const { return n * (n + 2); }
  std::int64_t width() const { return n * channels; }
};

template <class T>
struct MhcParams {
  const T* phi;    // [nC, m]
  const T* alpha;  // [3]: pre, post, res
  const T* bias;   // [m]
};

/// The write of the sublayer before: its stream, maps and layer output; all null when there is none. Backward passes do
/// not read x.
template <class T>
struct MhcWrite {
  const T* x = nullptr;     // [tokens, n, C]
  const T* maps = nullptr;  // [tokens, m]
  const T* f = nullptr;     // [tokens, C]
};

/// What the backward pass needs again.
template <class T>
struct MhcSaved {
  const T* x;     // [tokens, n, C]
  const T* z;     // [tokens, m], x_flat phi
  const T* r;     // [tokens], sqrt(mean(x_flat^2) + eps)
  const T* maps;  // [tokens, m]
};

/// Cotangents of what follows; null stands for zero.
template <class T>
struct MhcCotangents {
  const T* dy;     // [tokens, n, C], of this connection's own write
  const T* dpost;  // [tokens, n], of post
  const T* du;     // [tokens, C], of the layer's input
};

/// Gradients; those of the write before are not touched when there is none.
template <class T>
struct MhcGradients {
  T* dx;            // [tokens, n, C], of x: the cotangent of the write before; may be dy itself when n <= 4
  T* dphi;          // [nC, m]
  T* dalpha;        // [3]
  T* dbias;         // [m]
  T* dpost_before;  // [tokens, n]
  T* df;            // [tokens, C]
};

/// One pass over tiles of tokens that stay in cache: x = H_res x' + H_post^T f of the write before (else x is given),
/// z, r, the maps by sigmoid and Sinkhorn-Knopp, and the layer's input u = H_pre x.
template <class T>
void mhc_forward(const MhcSizes& sizes, const MhcParams<T>& params, const MhcWrite<T>& before, T* x, T* z, T* r,
                 T* maps, T* u);

/// Its vjp, in one pass over x and dy as well; partial sums of the parameters' gradients are added in order.
template <class T>
void mhc_backward(const MhcSizes& sizes, const MhcParams<T>& params, const MhcWrite<T>& before,
                  const MhcSaved<T>& saved, const MhcCotangents<T>& cotangents, const MhcGradients<T>& gradients);

/// y = H_res x + H_post^T f without anything after it: the last write of a stack.
template <class T>
void mhc_write(const MhcSizes& sizes, const MhcWrite<T>& write, T* y);

/// df = H_post dy and dpost_i = <dy_i, f>. The cotangents of x and H_res are left to the connection that made the maps:
/// it reads x and dy anyway and has both in one pass with its own terms.
template <class T>
void mhc_write_vjp(const MhcSizes& sizes, const MhcWrite<T>& write, const T* dy, T* dpost, T* df);

}  // namespace braid::mhc::kernels
