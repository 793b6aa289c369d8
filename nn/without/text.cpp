// What stands for nn/text where PCRE2, utf8proc or nlohmann-json is absent. Without load there is no Tokenizer.
#include <braid/core/error.h>
#include <braid/nn/text/tokenizer.h>

namespace braid::nn {

[[noreturn]] static void without_text() { throw MissingLibrary("Tokenizer", BRAID_LACKS_TEXT); }

Tokenizer Tokenizer::load(const std::filesystem::path&) { without_text(); }
Tokenizer Tokenizer::parse(std::string_view, const std::string&) { without_text(); }
std::int64_t Tokenizer::vocab() const { without_text(); }
std::optional<std::int32_t> Tokenizer::id(std::string_view) const { without_text(); }
std::optional<std::string_view> Tokenizer::token(std::int32_t) const { without_text(); }
std::optional<std::int32_t> Tokenizer::eos() const { without_text(); }
std::vector<std::int32_t> Tokenizer::encode(std::string_view, const EncodeOptions&) const { without_text(); }
std::string Tokenizer::decode(std::span<const std::int32_t>) const { without_text(); }

}  // namespace braid::nn
