#pragma once
#include <optional>
#include <string_view>

#include <braid/core/batch_invariant.h>

namespace braid {

/// Whose bits results have.
enum class Bits {
  fast,      ///< those of the fastest products that the processor has
  portable,  ///< the same under every instruction set with fused multiply-add: avx2, avx512, amx, neon
};

/// "fast" or "portable". Throws ValueError for any other value.
std::string_view name(Bits bits);

/// Chooses the bits of ops on this thread, and of the blocks of its parallel_for, while it is alive. Only products
/// differ: `portable` multiplies with braid's packed product alone, so that BatchInvariant holds too. All other ops
/// have the same bits under those instruction sets anyway. Functions of the C library (`pow`, `sin`, `cos`) may differ
/// in the last bit between its versions. Throws Error for `portable` where instruction_set() is `baseline` on x86-64,
/// which has no fused multiply-add.
class BitsScope {
 public:
  explicit BitsScope(Bits bits);  ///< chooses `bits`

 private:
  std::optional<BatchInvariant> packed_;
};

}  // namespace braid
