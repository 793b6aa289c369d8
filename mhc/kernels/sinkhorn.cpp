#include <braid/mhc/kernels/sinkhorn.h>

#include <algorithm>

#include <hwy/aligned_allocator.h>

#include <braid/mhc/kernels/tiles.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braid/mhc/kernels/sinkhorn.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <braid/mhc/kernels/sinkhorn-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {
namespace {

/// One matrix per lane, from and to contiguous matrices. kN is n, or 0 when it is known at run time only.
template <class T, int kN>
class Matrices {
 public:
  using D = hn::ScalableTag<T>;

  explicit Matrices(const SinkhornProblem& problem)
      : problem_(problem),
        solver_(d_, problem.n, problem.iterations, problem.rows_last),
        lanes_(static_cast<int64_t>(hn::Lanes(d_))),
        buffer_(hwy::AllocateAligned<T>(static_cast<size_t>(
            (3 * entries() + SinkhornLanes<D, kN>::workspace_vectors(problem.n, problem.iterations)) * lanes_))) {}

  void forward(const T* logits, T* out, int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b += lanes_) {
      pack(logits + b * entries(), end - b, part(0));
      solver_.forward(part(0));
      unpack(part(0), end - b, out + b * entries());
    }
  }

  void vjp(const T* logits, const T* dy, T* dlogits, int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; b += lanes_) {
      pack(logits + b * entries(), end - b, part(0));
      pack(dy + b * entries(), end - b, part(1));
      solver_.backward(part(0), part(1), part(3));
      unpack(part(1), end - b, dlogits + b * entries());
    }
  }

 private:
  int64_t entries() const { return kN != 0 ? kN * kN : int64_t{problem_.n} * problem_.n; }
  T* part(int64_t i) { return buffer_.get() + i * entries() * lanes_; }

  /// Lanes past the last matrix compute on zeros.
  void pack(const T* matrices, int64_t count, T* vectors) {
    if constexpr (kN == 4)
      if (count >= lanes_) return transpose(matrices, vectors);
    if (count < lanes_) std::fill_n(vectors, entries() * lanes_, T{0});
    for (int64_t b = 0; b < std::min(count, lanes_); ++b)
      for (int64_t e = 0; e < entries(); ++e) vectors[e * lanes_ + b] = matrices[b * entries() + e];
  }

  void unpack(const T* vectors, int64_t count, T* matrices) {
    if constexpr (kN == 4)
      if (count >= lanes_) return transpose_back(vectors, matrices);
    for (int64_t b = 0; b < std::min(count, lanes_); ++b)
      for (int64_t e = 0; e < entries(); ++e) matrices[b * entries() + e] = vectors[e * lanes_ + b];
  }

  /// [lanes, 16] -> [16, lanes] in registers: taking every fourth element twice is a transposition.
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

/// Blocks of about 2^18 entries' normalizations, in multiples of the 16 lanes of an AVX-512 vector of floats.
Tiles blocks_of(const SinkhornProblem& p) {
  constexpr int64_t kLanes = 16, kWork = 1 << 14;
  const int64_t work = int64_t{2} * p.n * p.n * p.iterations;
  return {p.matrices, kLanes * std::max<int64_t>(1, kWork / work)};
}

template <class T>
void forward(const SinkhornProblem& p, const T* logits, T* out) {
  blocks_of(p).for_each([&](int64_t begin, int64_t end) {
    if (p.n == 4)
      Matrices<T, 4>(p).forward(logits, out, begin, end);
    else
      Matrices<T, 0>(p).forward(logits, out, begin, end);
  });
}

template <class T>
void vjp(const SinkhornProblem& p, const T* logits, const T* dy, T* dlogits) {
  blocks_of(p).for_each([&](int64_t begin, int64_t end) {
    if (p.n == 4)
      Matrices<T, 4>(p).vjp(logits, dy, dlogits, begin, end);
    else
      Matrices<T, 0>(p).vjp(logits, dy, dlogits, begin, end);
  });
}

template <class T>
constexpr SinkhornKernels<T> kTable = {.forward = forward<T>, .vjp = vjp<T>};

braid::kernels::Tables<SinkhornKernels> tables() { return {kTable<float>, kTable<double>}; }

}  // namespace
}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::mhc::kernels {

HWY_EXPORT(tables);

braid::kernels::Tables<SinkhornKernels> sinkhorn_kernels() { return HWY_DYNAMIC_DISPATCH(tables)(); }

}  // namespace braid::mhc::kernels
#endif  // HWY_ONCE
