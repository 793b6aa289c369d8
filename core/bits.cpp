#include <braid/core/bits.h>

#include <braid/core/error.h>
#include <braid/core/instruction_set.h>
#include <braid/core/platform/machine.h>

namespace braid {

std::string_view name(Bits bits) {
  check_value(bits == Bits::fast || bits == Bits::portable, "Bits: {} is no choice of bits", static_cast<int>(bits));
  return bits == Bits::fast ? "fast" : "portable";
}

BitsScope::BitsScope(Bits bits) {
  if (bits == Bits::fast) return;
  check<Error>(instruction_set() != InstructionSet::baseline,
               "Bits: portable bits need fused multiply-add, so one of avx2, avx512, amx and neon, but {}; use "
               "Bits::fast, or --bits fast",
               instruction_sets().size() > 1 ? "BRAID_ISA or set_instruction_set() chose baseline"
                                             : platform::processor_name() + " has none of them");
  packed_.emplace();
}

}  // namespace braid
