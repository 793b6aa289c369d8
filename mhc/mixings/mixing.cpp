#include <braid/mhc/mixings/mixing.h>

#include <algorithm>

#include <fmt/ranges.h>
#include <hwy/aligned_allocator.h>

#include <braid/autograd/ops.h>
#include <braid/core/parallel.h>
#include <braid/mhc/mixings/composed.h>
#include <braid/mhc/mixings/detail/family.h>

#define HWY_TARGET_INCLUDE "braid/mhc/mixings/mixing.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/mixings/lanes-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {
namespace {

using braid::kernels::In, braid::kernels::Out;

/// The kernels of a mixing and what they need for one vector of matrices.
template <class T>
struct Workspace {
  Kernels<T> kernels;
  LanePacking<T> logits, matrices;
  hwy::AlignedFreeUniquePtr<T[]> buffer;
  T *l, *dl, *h, *dh, *rest;

  explicit Workspace(const Mixing& m)
      : kernels(m.family().kernels().template of<T>()),
        logits(m.logits()),
        matrices(m.n() * m.n()),
        buffer(hwy::AllocateAligned<T>(static_cast<std::size_t>(2 * (logits.size() + matrices.size()) +
                                                                kernels.workspace(m) * LanePacking<T>::lanes()))),
        l(buffer.get()),
        dl(l + logits.size()),
        h(dl + logits.size()),
        dh(h + matrices.size()),
        rest(dh + matrices.size()) {}
};

/// Calls f(workspace, b, count) for each vector of matrices, the b-th and those after it, of which `count` are left. A
/// thread takes blocks of some thousand multiplications, in multiples of the 16 lanes of an AVX-512 vector of floats.
template <class T, class F>
void for_each_vector_of(const Mixing& mixing, std::int64_t matrices, F f) {
  constexpr std::int64_t kLanes = 16, kWork = 1 << 14;
  const std::int64_t block = kLanes * std::max<std::int64_t>(1, kWork / (40 * mixing.n() * mixing.n()));
  parallel_for(matrices, block, [&](std::int64_t begin, std::int64_t end) {
    const Workspace<T> workspace(mixing);
    for (std::int64_t b = begin; b < end; b += LanePacking<T>::lanes()) f(workspace, b, end - b);
  });
}

template <class T>
void forward(const Mixing& mixing, const Tensor& logits, Tensor& result) {
  const std::int64_t m = mixing.logits(), entries = mixing.n() * mixing.n();
  const T* l = In{logits};
  T* h = Out{result};
  const auto mix = [=](const Workspace<T>& w, std::int64_t b, std::int64_t count) {
    w.logits.pack(l + b * m, count, w.l);
    w.kernels.forward(mixing, w.l, w.h, w.rest);
    w.matrices.unpack(w.h, count, h + b * entries);
  };
  for_each_vector_of<T>(mixing, result.numel() / entries, mix);
}

template <class T>
void vjp(const Mixing& mixing, const Tensor& logits, const Tensor& result, const Tensor& cotangent, Tensor& gradient) {
  const std::int64_t m = mixing.logits(), entries = mixing.n() * mixing.n();
  const T *l = In{logits}, *h = In{result}, *dh = In{cotangent};
  T* dl = Out{gradient};
  const auto mix_vjp = [=](const Workspace<T>& w, std::int64_t b, std::int64_t count) {
    w.logits.pack(l + b * m, count, w.l);
    w.matrices.pack(h + b * entries, count, w.h);
    w.matrices.pack(dh + b * entries, count, w.dh);
    w.kernels.vjp(mixing, w.l, w.h, w.dh, w.dl, w.rest);
    w.logits.unpack(w.dl, count, dl + b * m);
  };
  for_each_vector_of<T>(mixing, result.numel() / entries, mix_vjp);
}

template <class T>
constexpr BatchKernels<T> kTable = {.forward = forward<T>, .vjp = vjp<T>};

braid::kernels::Tables<BatchKernels> tables() { return {kTable<float>, kTable<double>}; }

}  // namespace
}  // namespace braid::mhc::mixings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::mhc::mixings, static braid::kernels::Tables<BatchKernels> batch_kernels())

#if HWY_ONCE
namespace braid::mhc {
namespace {

const mixings::Family* family_of(std::string_view name, std::int64_t n, const MixingSettings& s) {
  const auto all = mixings::families();
  const auto found = std::ranges::find(all, name, &mixings::Family::name);
  check_value(found != all.end(), "Mixing: name must be one of {} but is '{}'", fmt::join(mixing_names(), ", "), name);
  check_value(n >= 1, "Mixing: streams must be >= 1 but is {}", n);
  check_value((*found)->exists(n), "Mixing: {} supports {} but n is {}", name, (*found)->sizes, n);
  check_value(s.iterations >= 1, "Mixing: iterations must be >= 1 but is {}", s.iterations);
  check_value(s.eps >= 0, "Mixing: eps must be >= 0 but is {}", s.eps);
  check_value(s.gamma >= 0 && s.gamma <= 1, "Mixing: gamma must be in [0, 1] but is {}", s.gamma);
  check_value(s.block >= 1 && s.block <= 64, "Mixing: block must be in [1, 64] but is {}", s.block);
  return *found;
}

Tensor backward(const Mixing& mixing, const Tensor& logits_in, const Tensor& h, const Tensor& cotangent) {
  const Tensor logits = logits_in.contiguous(), dh = cotangent.contiguous();
  Tensor dlogits(logits.shape(), logits.dtype());
  mixings::batch_kernels().dispatch("Mixing", h.dtype(),
                                    [&](const auto& batch) { batch.vjp(mixing, logits, h, dh, dlogits); });
  return dlogits;
}

}  // namespace

Mixing::Mixing(std::string_view name, std::int64_t n, const MixingSettings& settings)
    : family_(family_of(name, n, settings)), n_(n), logits_(family_->logits(n, settings)), settings_(settings) {}

std::string_view Mixing::name() const { return family_->name; }

MixingTraits Mixing::traits() const { return family_->traits(settings_); }

Var Mixing::operator()(const Var& logits) const {
  check_shape(logits.rank() >= 1 && logits.size(-1) == logits_,
              "Mixing: logits must have shape [.., {}] for {} at n = {} but has {}", logits_, name(), n(),
              logits.shape());
  dispatch_float("Mixing", logits.dtype(), [](auto) {});  // in bf16, maps near singular ones would lose their digits
  if (composed()) {
    const Var h = family_->composed(logits, *this);
    // An empty sum takes the place of no logits on the tape.
    return logits_ > 0 ? h : h + expand_dims(sum(logits, {-1}, true), -1);
  }
  const Tensor l = logits.value().contiguous();
  Tensor h(l.shape().without(-1).concat({n_, n_}), l.dtype());
  mixings::batch_kernels().dispatch("Mixing", h.dtype(), [&](const auto& batch) { batch.forward(*this, l, h); });
  return record(family_->name.data(), h, {logits},
                [mixing = *this, z = logits.value(), h](const Tensor& dh) { return backward(mixing, z, h, dh); });
}

Tensor Mixing::identity() const {
  std::vector<double> logits;
  for (std::int64_t k = 0; k < logits_; ++k) logits.push_back(family_->identity(n_, k));
  return Tensor::of<double>({logits_}, logits);
}

Tensor Mixing::start() const {
  if (family_->start == nullptr) return identity();
  return Tensor::of<double>({logits_}, family_->start(*this));
}

std::vector<std::string_view> mixing_names(std::optional<std::int64_t> n) {
  std::vector<std::string_view> names;
  for (const mixings::Family* family : mixings::families())
    if (!n || family->exists(*n)) names.push_back(family->name);
  return names;
}

}  // namespace braid::mhc
#endif  // HWY_ONCE
