#pragma once
#include <cstdint>

#include <braid/core/kernels/tables.h>
#include <braid/mhc/kernels/read_write.h>
#include <braid/mhc/mixings/detail/family.h>

namespace braid::mhc::kernels {

/// One hyper-connection with dynamic maps over a batch of tokens (arXiv:2512.24880). z [columns], in the order of phi's
/// columns pre [n], post [n or 0], mixing [its logits], gives the maps of a token, a row of pre [n], post [n], res [n,
/// n]: sigmoid(h) + pre_eps, post_magnitude sigmoid(h) + post_eps, and the mixing of h, where h = alpha z / r + bias.
struct MHCSizes {
  std::int64_t tokens, n, channels;
  Mixing mixing;
  bool reads_only = false;  ///< no post, for maps that only read
  double eps, pre_eps, post_eps, post_magnitude;

  std::int64_t gates() const { return reads_only ? n : 2 * n; }
  std::int64_t columns() const { return gates() + mixing.logits(); }
  std::int64_t maps() const { return n * (n + 2); }
  std::int64_t width() const { return n * channels; }
  /// The index of a column's alpha, and the number of alphas.
  std::int64_t group(std::int64_t column) const { return column < n ? 0 : column < gates() ? 1 : gates() / n; }
  std::int64_t groups() const { return group(columns() - 1) + 1; }
};

template <class T>
struct MHCParams {
  mixings::Kernels<T> mixing;
  const T* phi;    // [nC, columns]
  const T* alpha;  // [groups]: pre, post, mixing
  const T* bias;   // [columns]
};

/// The pending write of the connection before, of any kind: y = H_res x + H_post^T f. All null without one.
template <class T>
struct MHCWrite {
  const T* x = nullptr;                       // [tokens, n, C]; not read by the vjp
  StreamMap<const Compute<T>> h_post, h_res;  // [n], [n, n]; the vjp does not read h_res
  const T* f = nullptr;                       // [tokens, C]
};

/// One pass over tiles of tokens that stay in cache: the pending write, then z = x_flat phi,
/// r = sqrt(mean(x_flat^2) + eps), the maps, and the layer's input u = H_pre x. With `pre` given, u is read by it
/// (single pass, arXiv:2609.19969), and H_pre is for the next read.
template <class T>
struct MHCRead {
  MHCSizes sizes;
  MHCParams<Compute<T>> params;
  MHCWrite<T> before;
  StreamMap<const Compute<T>> pre;  // [n]; null: read by H_pre
  const T* x;                       // [tokens, n, C]; null with a pending write, whose result is then read
  T* written;                       // [tokens, n, C], the result of the pending write; null without one
  Compute<T>*z, *r, *maps;          // [tokens, columns], [tokens], [tokens, maps]
  T* u;                             // [tokens, C]
};

/// The vjp, in one pass over x and dy: dx is the cotangent of the streams that were read, with the terms of this
/// connection's own write. Null cotangents are zero. dh_post and df of the write before follow from dx; the read that
/// computed its maps adds the terms of its x and H_res. The gradients of the parameters are summed group by group, then
/// in the order of the groups.
template <class T>
struct MHCReadVjp {
  MHCSizes sizes;
  MHCParams<Compute<T>> params;
  MHCWrite<T> before;
  StreamMap<const Compute<T>> pre;    // as given
  const T* x;                         // as read
  const Compute<T>*z, *r, *maps;      // the results of the forward pass
  const T *dy, *du;                   // [tokens, n, C] of this connection's write, [tokens, C]
  const Compute<T>*dh_pre, *dh_post;  // [tokens, n]; dh_pre only where `pre` is given
  T* dx;                              // [tokens, n, C]; may be dy itself when n <= 4
  Compute<T>* dpre;                   // [tokens, n] for any step of `pre`; unused without it
  Compute<T>*dphi, *dalpha, *dbias;   // [nC, columns], [groups], [columns]
  Compute<T>* dh_post_before;         // [tokens, n] for any step of h_post; unused without a write
  T* df_before;                       // [tokens, C]; unused without a write
};

/// The kernels for the best instruction set of this processor. T, that of the streams, is float, double or bfloat16.
template <class T>
struct MHCReadKernels {
  void (*read)(const MHCRead<T>&);
  void (*vjp)(const MHCReadVjp<T>&);
};

braid::kernels::Tables<MHCReadKernels> mhc_read_kernels();

}  // namespace braid::mhc::kernels
