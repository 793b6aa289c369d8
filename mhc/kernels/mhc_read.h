#pragma once
#include <cstdint>

#include <braid/core/kernels/tables.h>
#include <braid/mhc/kernels/read_write.h>
#include <braid/mhc/mixings/mixing.h>

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

/// The streams and the parameters of their maps, or the gradients of these; h_post, h_res and f are those of the
/// pending write of the connection before, of any kind: y = H_res x + H_post^T f. Contiguous, but for the step from
/// token to token of the maps.
struct MHCRead {
  Tensor phi, alpha, bias;                 // [nC, columns], [groups]: pre, post, mixing, [columns]
  Tensor pre;                              // [n], with leading axes or without; undefined: read by H_pre
  Tensor x;                                // [..., n, C]
  Tensor h_res = {}, h_post = {}, f = {};  // [n, n], [n], as pre, and [..., C]; undefined without a pending write
};

/// What the vjp needs again.
struct MHCSaved {
  Tensor z, r, maps;  // [..., columns], [...], [..., n + 2, n]
};

/// The kernels for the best instruction set of this processor. T, that of the streams, is float, double or bfloat16.
template <class T>
struct MHCReadKernels {
  /// One pass over tiles of tokens that stay in cache: the pending write, then z = x_flat phi,
  /// r = sqrt(mean(x_flat^2) + eps), the maps, and the layer's input u = H_pre x, of the `written` streams where there
  /// is a write. With `pre` given, u is read by it (single pass, arXiv:2609.19969), and H_pre is for the next read.
  void (*read)(const MHCSizes&, const MHCRead&, MHCSaved& saved, Tensor& written, Tensor& u);
  /// The vjp, in one pass over x, the streams that were read, and dy: dx is their cotangent, with the terms of this
  /// connection's own write. It may be dy itself when n <= 4. Undefined cotangents are zero; dh_pre is one only where
  /// `pre` is given. dpre and dh_post, [tokens, n] for any step of the maps, and df follow from dx; the read that
  /// computed the maps of the write before adds the terms of its x and H_res. The gradients of the parameters are
  /// summed group by group, then in the order of the groups.
  void (*vjp)(const MHCSizes&, const MHCRead&, const MHCSaved&, const Tensor& du, const Tensor& dy,
              const Tensor& dh_pre, const Tensor& dh_post, MHCRead& gradients);
};

braid::kernels::Tables<MHCReadKernels> mhc_read_kernels();

}  // namespace braid::mhc::kernels
