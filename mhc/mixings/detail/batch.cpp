#include <braid/mhc/mixings/detail/batch.h>

#include <algorithm>

#include <hwy/aligned_allocator.h>

#include <braid/core/parallel.h>

#define HWY_TARGET_INCLUDE "braid/mhc/mixings/detail/batch.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Rows of `entries`, from and to one row per lane. Lanes past the last row are zero.
template <class T>
class Rows {
 public:
  explicit Rows(std::int64_t entries) : entries_(entries) {}

  static std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>())); }
  std::int64_t size() const { return entries_ * lanes(); }

  void pack(const T* rows, std::int64_t count, T* vectors) const {
    if (entries_ == 16 && count >= lanes()) return transpose(rows, vectors);
    if (count < lanes()) std::fill_n(vectors, size(), T{0});
    for (std::int64_t b = 0; b < std::min(count, lanes()); ++b)
      for (std::int64_t e = 0; e < entries_; ++e) vectors[e * lanes() + b] = rows[b * entries_ + e];
  }

  void unpack(const T* vectors, std::int64_t count, T* rows) const {
    if (entries_ == 16 && count >= lanes()) return transpose_back(vectors, rows);
    for (std::int64_t b = 0; b < std::min(count, lanes()); ++b)
      for (std::int64_t e = 0; e < entries_; ++e) rows[b * entries_ + e] = vectors[e * lanes() + b];
  }

 private:
  using D = hn::ScalableTag<T>;

  /// [lanes, 16] -> [16, lanes] in registers: taking every fourth element twice is a transposition.
  static void transpose(const T* from, T* to) {
    const D d;
    HWY_ALIGN T columns[16 * hn::MaxLanes(d)];  // [column, matrix, row]
    hn::Vec<D> v[4];
    for (std::int64_t i = 0; i < 4; ++i) {
      hn::LoadInterleaved4(d, from + i * 4 * lanes(), v[0], v[1], v[2], v[3]);
      for (std::int64_t j = 0; j < 4; ++j) hn::Store(v[j], d, columns + (j * 4 + i) * lanes());
    }
    for (std::int64_t j = 0; j < 4; ++j) {
      hn::LoadInterleaved4(d, columns + j * 4 * lanes(), v[0], v[1], v[2], v[3]);
      for (std::int64_t i = 0; i < 4; ++i) hn::Store(v[i], d, to + (i * 4 + j) * lanes());
    }
  }

  static void transpose_back(const T* from, T* to) {
    const D d;
    HWY_ALIGN T columns[16 * hn::MaxLanes(d)];
    hn::Vec<D> v[4];
    for (std::int64_t j = 0; j < 4; ++j) {
      for (std::int64_t i = 0; i < 4; ++i) v[i] = hn::Load(d, from + (i * 4 + j) * lanes());
      hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d, columns + j * 4 * lanes());
    }
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t j = 0; j < 4; ++j) v[j] = hn::Load(d, columns + (j * 4 + i) * lanes());
      hn::StoreInterleaved4(v[0], v[1], v[2], v[3], d, to + i * 4 * lanes());
    }
  }

  std::int64_t entries_;
};

/// The workspace of a mixing for one block of matrices after the other.
template <class T>
class Lanes {
 public:
  explicit Lanes(const Batch<T>& batch)
      : batch_(batch),
        logits_(batch.problem.logits),
        matrices_(batch.problem.entries()),
        buffer_(hwy::AllocateAligned<T>(static_cast<std::size_t>(
            2 * (logits_.size() + matrices_.size()) + batch.mixing.workspace(batch.problem) * Rows<T>::lanes()))),
        l_(buffer_.get()),
        dl_(l_ + logits_.size()),
        h_(dl_ + logits_.size()),
        dh_(h_ + matrices_.size()),
        workspace_(dh_ + matrices_.size()) {}

  void forward(const T* logits, T* h, std::int64_t begin, std::int64_t end) {
    const Problem& p = batch_.problem;
    for (std::int64_t b = begin; b < end; b += Rows<T>::lanes()) {
      logits_.pack(logits + b * p.logits, end - b, l_);
      batch_.mixing.forward(p, l_, h_, workspace_);
      matrices_.unpack(h_, end - b, h + b * p.entries());
    }
  }

  void vjp(const T* logits, const T* h, const T* dh, T* dlogits, std::int64_t begin, std::int64_t end) {
    const Problem& p = batch_.problem;
    for (std::int64_t b = begin; b < end; b += Rows<T>::lanes()) {
      logits_.pack(logits + b * p.logits, end - b, l_);
      matrices_.pack(h + b * p.entries(), end - b, h_);
      matrices_.pack(dh + b * p.entries(), end - b, dh_);
      batch_.mixing.vjp(p, l_, h_, dh_, dl_, workspace_);
      logits_.unpack(dl_, end - b, dlogits + b * p.logits);
    }
  }

 private:
  const Batch<T>& batch_;
  Rows<T> logits_, matrices_;
  hwy::AlignedFreeUniquePtr<T[]> buffer_;
  T *l_, *dl_, *h_, *dh_, *workspace_;
};

/// Calls f(begin, end) for blocks of some thousand multiplications, in multiples of the 16 lanes of an AVX-512 vector
/// of floats, on all threads.
template <class T, class F>
void for_each_block(const Batch<T>& b, F f) {
  constexpr std::int64_t kLanes = 16, kWork = 1 << 14;
  parallel_for(b.matrices, kLanes * std::max<std::int64_t>(1, kWork / (40 * b.problem.entries())), f);
}

template <class T>
constexpr BatchKernels<T> kTable = {
    .forward =
        [](const Batch<T>& batch, const T* logits, T* h) {
          for_each_block(batch,
                         [&](std::int64_t begin, std::int64_t end) { Lanes<T>(batch).forward(logits, h, begin, end); });
        },
    .vjp =
        [](const Batch<T>& batch, const T* logits, const T* h, const T* dh, T* dlogits) {
          for_each_block(batch, [&](std::int64_t begin, std::int64_t end) {
            Lanes<T>(batch).vjp(logits, h, dh, dlogits, begin, end);
          });
        },
};

braid::kernels::Tables<BatchKernels> tables() { return {kTable<float>, kTable<double>}; }

}  // namespace
}  // namespace braid::mhc::mixings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::mhc::mixings, braid::kernels::Tables<BatchKernels> batch_kernels())
