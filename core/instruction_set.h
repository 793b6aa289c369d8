#pragma once
#include <string_view>
#include <vector>

namespace braid {

/// The instructions that ops use. Each set of x86-64 includes those before it.
enum class InstructionSet {
  baseline,  ///< what every processor of the architecture has: SSE2 on x86-64, NEON on 64-bit ARM
  avx2,      ///< AVX2
  avx512,    ///< AVX-512, and AVX512_BF16 where it is faster than f32
  amx,       ///< AVX-512 and AMX
  neon,      ///< NEON, on 64-bit ARM
};

/// "baseline", "avx2", "avx512", "amx" or "neon". Throws ValueError for any other value.
std::string_view name(InstructionSet set);

/// The sets that this processor has, the best one last.
const std::vector<InstructionSet>& instruction_sets();

/// The set in use: the one that was set, or else the one that the environment's BRAID_ISA named at the first call, or
/// else the best. Throws ValueError if BRAID_ISA names none of instruction_sets().
InstructionSet instruction_set();

/// Sets the instruction set of ops that begin later, in this process; must not be called while ops run. oneDNN takes a
/// limit only before its first product: under other sets than that of the first, and under `baseline` on a processor
/// with more, braid's packed product multiplies in its place. Other code that uses Highway's dispatch follows too.
/// Throws ValueError unless `set` is one of instruction_sets().
void set_instruction_set(InstructionSet set);

/// Highway's name of the best code for the set in use, such as "AVX3_ZEN4".
const char* kernel_target();

namespace detail {
/// Makes kernels follow instruction_set() from the first one on; the later calls cost a load and a branch.
inline void begin_dispatch() { [[maybe_unused]] static const InstructionSet first = instruction_set(); }
}  // namespace detail

}  // namespace braid
