#include <braid/mhc/mixings/detail/batch.h>

#include <algorithm>

#include <hwy/aligned_allocator.h>

#include <braid/core/parallel.h>

#define HWY_TARGET_INCLUDE "braid/mhc/mixings/detail/batch.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/mixings/lanes-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::mixings::HWY_NAMESPACE {
namespace {

/// The workspace of a mixing for one block of matrices after the other.
template <class T>
class Workspace {
 public:
  explicit Workspace(const Batch<T>& batch)
      : batch_(batch),
        logits_(batch.problem.logits),
        matrices_(batch.problem.entries()),
        buffer_(hwy::AllocateAligned<T>(
            static_cast<std::size_t>(2 * (logits_.size() + matrices_.size()) +
                                     batch.mixing.workspace(batch.problem) * LanePacking<T>::lanes()))),
        l_(buffer_.get()),
        dl_(l_ + logits_.size()),
        h_(dl_ + logits_.size()),
        dh_(h_ + matrices_.size()),
        workspace_(dh_ + matrices_.size()) {}

  void forward(const T* logits, T* h, std::int64_t begin, std::int64_t end) {
    const Problem& p = batch_.problem;
    for (std::int64_t b = begin; b < end; b += LanePacking<T>::lanes()) {
      logits_.pack(logits + b * p.logits, end - b, l_);
      batch_.mixing.forward(p, l_, h_, workspace_);
      matrices_.unpack(h_, end - b, h + b * p.entries());
    }
  }

  void vjp(const T* logits, const T* h, const T* dh, T* dlogits, std::int64_t begin, std::int64_t end) {
    const Problem& p = batch_.problem;
    for (std::int64_t b = begin; b < end; b += LanePacking<T>::lanes()) {
      logits_.pack(logits + b * p.logits, end - b, l_);
      matrices_.pack(h + b * p.entries(), end - b, h_);
      matrices_.pack(dh + b * p.entries(), end - b, dh_);
      batch_.mixing.vjp(p, l_, h_, dh_, dl_, workspace_);
      logits_.unpack(dl_, end - b, dlogits + b * p.logits);
    }
  }

 private:
  const Batch<T>& batch_;
  LanePacking<T> logits_, matrices_;
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
          for_each_block(
              batch, [&](std::int64_t begin, std::int64_t end) { Workspace<T>(batch).forward(logits, h, begin, end); });
        },
    .vjp =
        [](const Batch<T>& batch, const T* logits, const T* h, const T* dh, T* dlogits) {
          for_each_block(batch, [&](std::int64_t begin, std::int64_t end) {
            Workspace<T>(batch).vjp(logits, h, dh, dlogits, begin, end);
          });
        },
};

braid::kernels::Tables<BatchKernels> tables() { return {kTable<float>, kTable<double>}; }

}  // namespace
}  // namespace braid::mhc::mixings::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::mhc::mixings, braid::kernels::Tables<BatchKernels> batch_kernels())
