#include <braid/mhc/kernels/sinkhorn.h>

#include <algorithm>

#include <hwy/aligned_allocator.h>

#include <braid/core/parallel.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braid/mhc/kernels/sinkhorn.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <braid/mhc/kernels/sinkhorn-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::HWY_NAMESPACE {
namespace {

using kernels::SinkhornProblem;

/// A matrix a lane, from and to matrices behind each other. kN is n, or 0 when it is known at run time only.
template <class T, int kN>
class Lanes {
 public:
  using D = hn::ScalableTag<T>;

  explicit Lanes(const SinkhornProblem& problem)
      : problem_(problem),
        solver_(d_, problem.n, problem.iterations, problem.rows_last),
        lanes_(static_cast<int64_t>(hn::Lanes(d_))),
        buffer_(hwy::AllocateAligned<T>(static_cast<size_t>(
            (3 * entries() + SinkhornLanes<D, kN>::workspace_vectors(problem.n, problem.iterations)) * lanes_))) {}

  void forward(const T* logits, T* out, int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b += lanes_) {
      enter(logits + b * entries(), end - b, part(0));
      solver_.forward(part(0));
      leave(part(0), end - b, out + b * entries());
    }
  }

  void vjp(const T* logits, const T* dy, T* dlogits, int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b += lanes_) {
      enter(logits + b * entries(), end - b, part(0));
      enter(dy + b * entries(), end - b, part(1));
      solver_.backward(part(0), part(1), part(3));
      leave(part(1), end - b, dlogits + b * entries());
    }
  }

 private:
  int64_t entries() const { return kN != 0 ? kN * kN : int64_t{problem_.n} * problem_.n; }
  T* part(int64_t i) { return buffer_.get() + i * entries() * lanes_; }

  /// Lanes past the last matrix compute on zeros.
  void enter(const T* matrices, int64_t count, T* vectors) {
    if constexpr (kN == 4)
      if (count >= lanes_) return transpose(matrices, vectors);
    if (count < lanes_) std::fill_n(vectors, entries() * lanes_, T{0});
    for (int64_t b = 0; b < std::min(count, lanes_); ++b)
      for (int64_t e = 0; e < entries(); ++e) vectors[e * lanes_ + b] = matrices[b * entries() + e];
  }

  void leave(const T* vectors, int64_t count, T* matrices) {
    if constexpr (kN == 4)
      if (count >= lanes_) return transpose_back(vectors, matrices);
    for (int64_t b = 0; b < std::min(count, lanes_); ++b)
      for (int64_t e = 0; e < entries(); ++e) matrices[b * entries() + e] = vectors[e * lanes_ + b];
  }

  /// [lanes, 16] -> [16, lanes] in registers: taking every fourth number twice is a transposition.
  void transpose(const T* from, T* to) {
    T* columns = part(2);  // [column, matrix, row]
    hn::Vec<D> v[4];
    for (int64_t i = 0; i < 4; ++i) {
      hn::LoadInterleaved4(d_, from + i * 4 * lanes_, v[0], v[1], v[2], v[3]);
      for (int64_t j = 0; j < 4; ++j) hn::Store(v[j], d_, columns + (j * 4 + i) * lanes_);
    }
    for (int64_t j = 0; j < 4; ++j) {
      hn::LoadInterleaved4(d_, columns + j * 4 * lanes_, v[0], v[1], v[2], v[3]);
      for (int64_t i = 0; i < 4; ++i) hn::Store(v[i], d_, to + (i * 4 + j) * lanes_);
    }
  }

  void transpose_back(const T* from, T* to) {
    T* columns = part(2);
    hn::Vec<D> v[4];
    for (int64_t j = 0; j < 4; ++j) {
      for (int64_t i = 0; i < 4; ++i) v[i] = hn::Load(d_, from + (i * 4 + j) * lanes_);
      hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d_, columns + j * 4 * lanes_);
    }
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t j = 0; j < 4; ++j) v[j] = hn::Load(d_, columns + (j * 4 + i) * lanes_);
      hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d_, to + i * 4 * lanes_);
    }
  }

  const D d_;
  const SinkhornProblem problem_;
  SinkhornLanes<D, kN> solver_;
  int64_t lanes_;
  hwy::AlignedFreeUniquePtr<T[]> buffer_;  // logits, cotangents, a transposition's columns, the solver's workspace
};

template <class T>
void forward(const SinkhornProblem& p, const T* logits, T* out, int64_t begin, int64_t end) {
  if (p.n == 4)
    Lanes<T, 4>(p).forward(logits, out, begin, end);
  else
    Lanes<T, 0>(p).forward(logits, out, begin, end);
}

template <class T>
void vjp(const SinkhornProblem& p, const T* logits, const T* dy, T* dlogits, int64_t begin, int64_t end) {
  if (p.n == 4)
    Lanes<T, 4>(p).vjp(logits, dy, dlogits, begin, end);
  else
    Lanes<T, 0>(p).vjp(logits, dy, dlogits, begin, end);
}

void forward_f32(const SinkhornProblem& p, const float* logits, float* out, int64_t begin, int64_t end) {
  forward(p, logits, out, begin, end);
}

void forward_f64(const SinkhornProblem& p, const double* logits, double* out, int64_t begin, int64_t end) {
  forward(p, logits, out, begin, end);
}

void vjp_f32(const SinkhornProblem& p, const float* logits, const float* dy, float* dlogits, int64_t begin,
             int64_t end) {
  vjp(p, logits, dy, dlogits, begin, end);
}

void vjp_f64(const SinkhornProblem& p, const double* logits, const double* dy, double* dlogits, int64_t begin,
             int64_t end) {
  vjp(p, logits, dy, dlogits, begin, end);
}

}  // namespace
}  // namespace braid::mhc::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::mhc {
namespace {

HWY_EXPORT(forward_f32);
HWY_EXPORT(forward_f64);
HWY_EXPORT(vjp_f32);
HWY_EXPORT(vjp_f64);

/// Calls f(begin, end) for blocks of about 2^18 entries' normalisations, in multiples of the 16 lanes of an AVX-512
/// vector of floats.
template <class F>
void for_each_block(const kernels::SinkhornProblem& p, F f) {
  constexpr std::int64_t kLanes = 16, kWork = 1 << 14;
  const std::int64_t work = std::int64_t{2} * p.n * p.n * p.iterations;
  parallel_for(p.matrices, kLanes * std::max<std::int64_t>(1, kWork / work), f);
}

}  // namespace

namespace kernels {

void sinkhorn_forward(const SinkhornProblem& p, const float* logits, float* out) {
  for_each_block(p, [&](auto... range) { HWY_DYNAMIC_DISPATCH(forward_f32)(p, logits, out, range...); });
}

void sinkhorn_forward(const SinkhornProblem& p, const double* logits, double* out) {
  for_each_block(p, [&](auto... range) { HWY_DYNAMIC_DISPATCH(forward_f64)(p, logits, out, range...); });
}

void sinkhorn_vjp(const SinkhornProblem& p, const float* logits, const float* dy, float* dlogits) {
  for_each_block(p, [&](auto... range) { HWY_DYNAMIC_DISPATCH(vjp_f32)(p, logits, dy, dlogits, range...); });
}

void sinkhorn_vjp(const SinkhornProblem& p, const double* logits, const double* dy, double* dlogits) {
  for_each_block(p, [&](auto... range) { HWY_DYNAMIC_DISPATCH(vjp_f64)(p, logits, dy, dlogits, range...); });
}

}  // namespace kernels
}  // namespace braid::mhc
#endif  // HWY_ONCE
