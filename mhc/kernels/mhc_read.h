#pragma once
#include <cstdint>

#include <braid/core/kernels/tables.h>
#include <braid/mhc/kernels/read_write.h>

namespace braid::mhc::kernels {

/// One manifold-constrained hyper-connection (arXiv:2512.24880) over a batch of tokens. The maps of a token are a row
/// of m = n (n + 2) values in the order of phi's columns: pre [n], post [n], res [n, n].
struct MHCSizes {
  std::int64_t tokens, n, channels;
  int iterations;
  bool rows_last;
  double eps;

  std::int64_t maps() const { return n * (n + 2); }
  std::int64_t width() const { return n * channels; }
};

template <class T>
struct MHCParams {
  const T* phi;    // [nC, m]
  const T* alpha;  // [3]: pre, post, res
  const T* bias;   // [m]
};

/// The write that an earlier connection of any kind still owes: y = H_res x + H_post^T f. All null when there is none.
template <class T>
struct MHCWrite {
  const T* x = nullptr;              // [tokens, n, C]; not read by the vjp
  StreamMap<const T> h_post, h_res;  // [n], [n, n]; the vjp does not read h_res
  const T* f = nullptr;              // [tokens, C]
};

/// One pass over tiles of tokens that stay in cache: the pending write, then z = x_flat phi,
/// r = sqrt(mean(x_flat^2) + eps), the maps by sigmoid and Sinkhorn-Knopp, and the layer's input u = H_pre x.
template <class T>
struct MHCRead {
  MHCSizes sizes;
  MHCParams<T> params;
  MHCWrite<T> before;
  const T* x;           // [tokens, n, C]; null when a write is pending, whose result is then read
  T* written;           // [tokens, n, C], the result of the pending write; null when there is none
  T *z, *r, *maps, *u;  // [tokens, m], [tokens], [tokens, m], [tokens, C]
};

/// Its vjp, in one pass over x and dy: dx is the cotangent of the streams that were read, with the terms of this
/// connection's own write. Null cotangents are zero. Of the write before, dh_post and df follow from dx; its x and
/// H_res are left to the read that made the maps. The gradients of the parameters are summed group by group, then in
/// the order of the groups.
template <class T>
struct MHCReadVjp {
  MHCSizes sizes;
  MHCParams<T> params;
  MHCWrite<T> before;
  const T *x, *z, *r, *maps;      // x as read, and the results of the forward pass
  const T *dy, *dh_post, *du;     // [tokens, n, C] of this connection's write, [tokens, n], [tokens, C]
  T* dx;                          // [tokens, n, C]; may be dy itself when n <= 4
  T *dphi, *dalpha, *dbias;       // [nC, m], [3], [m]
  T *dh_post_before, *df_before;  // [tokens, n] whatever the step of h_post, [tokens, C]; not touched without a write
};

/// The kernels for the best instruction set of this processor. T is float or double.
template <class T>
struct MHCReadKernels {
  void (*read)(const MHCRead<T>&);
  void (*vjp)(const MHCReadVjp<T>&);
};

braid::kernels::Tables<MHCReadKernels> mhc_read_kernels();

}  // namespace braid::mhc::kernels
