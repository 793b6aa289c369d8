// TensorBoard's events of a run, as a resumed run reads them: events that are kept once are kept again.
#include "../apps/common/events.h"

#include "target.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace braid;
  return fuzz::accept_or_refuse(size, [&] {
    const std::string kept = apps::events_until(fuzz::file_of({data, size}, ".events"), 3);
    const auto copy = fuzz::file_of({reinterpret_cast<const std::uint8_t*>(kept.data()), kept.size()}, ".copy");
    fuzz::require(apps::events_until(copy, 3) == kept, "events that were kept stay");
  });
}
