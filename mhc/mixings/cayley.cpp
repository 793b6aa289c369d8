#include <braid/autograd/ops.h>
#include <braid/mhc/mixings/detail/family.h>

#define HWY_TARGET_INCLUDE "braid/mhc/mixings/cayley.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/mixings/cayley-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {
namespace {

template <class D, int kN>
class Cayley : public CayleyLanes<D, kN, kN> {
  using Base = CayleyLanes<D, kN, kN>;
  using Base::lanes, Base::n, Base::rotation, Base::rotation_vjp;
  using typename Base::T;

 public:
  explicit Cayley(const Mixing& m) : Base(m, m.n()) {}

  std::int64_t workspace() const { return 2 * n() * n(); }

  void forward(const T* logits, T* h, T* workspace) const { rotation(logits, h, workspace); }

  void vjp(const T*, const T* h, const T* dh, T* dlogits, T* workspace) const {
    rotation_vjp(h, dh, dlogits, workspace, workspace + n() * n() * lanes());
  }
};

braid::kernels::Tables<Kernels> tables() { return tables_of<Cayley>(); }

}  // namespace
}  // namespace braid::mhc::mixings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::mhc::mixings {

HWY_EXPORT(tables);

/// The column of A above the diagonal entry (k, k): [.., k, 1].
static Var column(const Var& logits, std::int64_t size, std::int64_t k) {
  Tensor ids({k}, DType::i32);
  for (std::int64_t i = 0; i < k; ++i)
    ids.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(i * (2 * size - i - 1) / 2 + k - i - 1);
  return expand_dims(index_select(logits, -1, ids), -1);
}

/// The inverse of I + A grows by one row and column after the other; cayley-inl.h has the formula and the bound.
Var cayley_rotation(const Var& logits, std::int64_t size) {
  const double bound = logits.dtype() == DType::f64 ? 0x1p24 : 0x1p10;
  const Var bounded = clamp(logits, -bound, bound);
  Var p = zeros(logits.shape().without(-1).concat({0, 0}), logits.dtype());
  for (std::int64_t k = 0; k < size; ++k) {
    const Var a = column(bounded, size, k), u = matmul(p, a), w = matmul(transpose(a), p);
    const Var r = 1 / (1 + matmul(w, a)), scaled = r * u;
    p = concat({concat({p - matmul(scaled, w), -scaled}, -1), concat({r * w, r}, -1)}, -2);
  }
  return 2 * p - eye(size, logits.dtype());
}

/// Rotations by Cayley's map: `H = (I - A)(I + A)^-1`, A skew with the logits above its diagonal; solved exactly, where
/// JPmHC (arXiv:2602.18308) iterates. Orthogonal to rounding; entries may be negative, rows do not sum to 1, and -1 is
/// no eigenvalue. Starts at the identity.
extern constinit const Family cayley = {
    .name = "cayley",
    .traits = [](const MixingSettings&) { return MixingTraits{.orthogonal = true, .negative = true}; },
    .logits = [](std::int64_t n, const MixingSettings&) { return n * (n - 1) / 2; },
    .composed = [](const Var& logits, const Mixing& m) { return cayley_rotation(logits, m.n()); },
    .kernels = [] { return BRAID_TABLES(); },
};

}  // namespace braid::mhc::mixings
#endif  // HWY_ONCE
