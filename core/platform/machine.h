#pragma once
#include <string>

namespace braid::platform {

std::string host_name();
std::string processor_name();  ///< as its maker calls it; `unknown` if the system does not say
/// The processors that this process may use, as a 0 or 1 for each; empty where processes may use all of them.
std::string usable_processors();
/// An identifier that differs between machines, and between boots of one.
std::string boot_id();

/// Whether the processor has the bf16 instructions of AVX-512 and is not Intel's, where they are slower than f32.
bool has_fast_avx512_bf16();
/// Whether the processor has AMX for bf16, with the parts of AVX-512 that go with it, and the system lets this process
/// use it, which this call asks for. Under a hypervisor it takes microseconds.
bool may_use_amx();

}  // namespace braid::platform
