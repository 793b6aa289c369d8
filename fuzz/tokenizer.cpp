// Files of tokenizers, each with a text after a zero byte: a tokenizer that is accepted encodes the text and decodes
// it again.
#include <nlohmann/json.hpp>

#include <braid/nn/text/tokenizer.h>

#include "target.h"

namespace {

/// Whether the bytes of a text's ids are those of the text.
bool keeps_text(const std::string& file) {
  const auto json = nlohmann::json::parse(file);
  const auto is_empty = [&](const char* key) { return !json.contains(key) || json[key].empty(); };
  return is_empty("normalizer") && is_empty("added_tokens") &&
         json["pre_tokenizer"].value("add_prefix_space", true) == false;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace braid;
  const std::string input = fuzz::text_of(data, size);
  const std::size_t end = std::min(input.find('\0'), input.size());
  const std::string file = input.substr(0, end), text = input.substr(std::min(end + 1, input.size()));
  return fuzz::accept_or_refuse(size, [&] {
    const auto tokenizer = nn::Tokenizer::parse(file);
    const auto ids = tokenizer.encode(text, {.add_special_tokens = false});
    for (const std::int32_t id : ids)
      fuzz::require(id >= 0 && id < tokenizer.vocab() && tokenizer.token(id), "ids are those of tokens");
    const std::string decoded = tokenizer.decode(ids);
    if (keeps_text(file)) fuzz::require(decoded == text, "an encoded text decodes to itself");
    tokenizer.decode(tokenizer.encode(text));
  });
}
