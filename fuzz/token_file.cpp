// Files of token ids: every id in the file can be read, and no more.
#include "../apps/common/corpus.h"

#include "target.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace braid;
  return fuzz::accept_or_refuse(size, [&] {
    const apps::TokenFile file(fuzz::file_of({data, size}, ".bin"));
    std::vector<std::int32_t> ids(static_cast<std::size_t>(file.size()));
    file.copy(0, file.size(), ids.data());
    const std::int64_t highest = file.highest_id();
    for (const std::int32_t id : ids)
      fuzz::require(static_cast<std::uint32_t>(id) <= highest, "no id is higher than the highest");
    if (highest >= 1 << 24) return;
    const apps::Corpus corpus(file, apps::Vocabulary::of_numbers(highest + 1), 1);
    Rng rng(1);
    for (const std::int32_t id : corpus.sample(2, rng).tokens.to_vector<std::int32_t>())
      fuzz::require(id >= 0 && id <= highest, "ids of batches are those of the file");
  });
}
