#pragma once
#include <braid/nn/optim/adam.h>

namespace braid::nn {

/// The default rule of Muon, as DeepSeek-V4's: parameters of two axes and more but those in fields called `embedding`,
/// `positions` or `head`, and static mixing matrices of hyper-connections, whose `phi` and `fn` are among the matrices.
bool hidden_matrices(std::string_view name, const Tensor& value);

/// Settings of Muon.
struct MuonSettings {
  AdamWSettings adamw = {};  ///< of the other parameters; the rate and the decay of all
  double momentum = 0.95;    ///< the factor that the velocity keeps per step, in [0, 1)
  bool nesterov = true;      ///< evaluates one step ahead along the velocity
  int iterations = 5;        ///< of Newton-Schulz
  double update_rms = 0.18;  ///< root mean square of a matrix's update / lr: as Adam's, which the rate is made for
  ParamRule matrices = hidden_matrices;  ///< which parameters are updated as matrices, axes after the first as one
};

/// Muon: AdamW but for matrices [m, n], whose velocity is replaced by a matrix with the same singular vectors and
/// singular values near 1: with `u = momentum u + grad`, `p -= lr update_rms sqrt(max(m, n)) orthogonalized(u)`. Its
/// state has `velocity.*` for matrices and AdamW's for the others. kellerjordan.github.io/posts/muon, arXiv:2502.16982.
class Muon : public AdamW {
 public:
  /// Throws ValueError for settings of AdamW that it refuses, unless momentum is in [0, 1), iterations is at least 1
  /// and update_rms is finite and at least 0, and for a rule that chooses a parameter of one axis, at the first step.
  explicit Muon(const MuonSettings& settings = {});

 private:
  std::vector<State> state_of(std::string_view name, const Tensor& value) const override;
  void apply(const std::vector<Update>& updates, double grad_scale) override;

  MuonSettings settings_;
};

/// The matrix [m, n] with x's singular vectors and singular values of about 1, between .68 and 1.14 after five
/// iterations: `y = a x + (b A + c A^2) x` with `A = x x^T` and the coefficients 3.4445, -4.7750, 2.0315. Zeros stay.
/// x [m, n] of any scale, f32 or f64. Throws ShapeError unless x is a matrix.
Tensor orthogonalized(const Tensor& x, int iterations = 5);

}  // namespace braid::nn
