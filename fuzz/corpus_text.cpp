// Training texts: a corpus samples and decodes every text that it accepts, and a checkpoint can name its characters.
#include <nlohmann/json.hpp>

#include "../apps/common/corpus.h"

#include "target.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace braid;
  return fuzz::accept_or_refuse(size, [&] {
    fuzz::Bytes bytes(data, size);
    const int context = bytes.in(1, 8);
    const std::string text = bytes.rest();
    const apps::Corpus corpus(text, context);
    nlohmann::json(corpus.alphabet()).dump();  // throws unless it is UTF-8
    Rng rng(1);
    for (const apps::Batch& batch : {corpus.sample(3, rng), corpus.held_out(2).front()}) {
      const auto ids = batch.tokens.to_vector<std::int32_t>();
      fuzz::require(text.find(corpus.decode(std::span(ids).first(static_cast<std::size_t>(context)))) != text.npos,
                    "a window decodes to a piece of the text");
    }
  });
}
