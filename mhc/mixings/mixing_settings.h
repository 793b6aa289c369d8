#pragma once
namespace braid::mhc {

/// The marginal that is normalized last and therefore exact; the other one converges with the iterations.
enum class Marginal {
  columns,  ///< rows first, columns last: the published packages
  rows,     ///< columns first, rows last: arXiv:2512.24880, eq. 9; the forward gain is exactly 1
};

/// Settings that do not concern a mixing have no effect on it.
struct MixingSettings {
  int iterations = 20;              ///< sinkhorn: normalizations of rows and of columns
  Marginal exact = Marginal::rows;  ///< sinkhorn
  double eps = 0;    ///< sinkhorn: added to the first softmax and to every later divisor (DeepSeek-V4: 1e-6)
  double gamma = 1;  ///< circulant: share of the softmax beside the identity, in [0, 1]
  int block = 2;     ///< orthostochastic: size s of the blocks whose squares are summed
};

}  // namespace braid::mhc
