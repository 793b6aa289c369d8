#pragma once

namespace braid::platform {

/// Whether the processor has the bf16 instructions of AVX-512.
bool has_avx512_bf16();
/// Whether Intel made the processor.
bool is_intel();
/// Whether the processor has AMX for bf16, with the parts of AVX-512 that go with it, and the system lets this process
/// use it, which this call asks for. Under a hypervisor it takes microseconds.
bool may_use_amx();

}  // namespace braid::platform
