#include <tests/golden/tokenizer.h>

#include <fstream>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <braid/core/error.h>
#include <braid/core/utf8.h>
#include <braid/nn/text/tokenizer.h>

namespace braid::golden {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<std::int32_t>;

nlohmann::json read_json(const fs::path& file) {
  auto json = nlohmann::json::parse(std::ifstream(file), nullptr, /*allow_exceptions=*/false);
  check<FileError>(!json.is_discarded(), "{}: must be JSON", file.string());
  return json;
}

std::string first_ids(const Ids& ids) {
  return fmt::format("[{}]", fmt::join(ids.begin(), ids.begin() + std::min<std::ptrdiff_t>(std::ssize(ids), 16), ", "));
}

}  // namespace

bool is_tokenizer(const fs::path& folder) { return exists(folder / "tokenizer.json") && exists(folder / "cases.json"); }

Verdict check_tokenizer(const fs::path& folder) {
  const auto tokenizer = nn::Tokenizer::load(folder / "tokenizer.json");
  const nlohmann::json file = read_json(folder / "tokenizer.json");
  const bool keeps_text = file.value("normalizer", nlohmann::json()).is_null() &&
                          !file.at("pre_tokenizer").value("add_prefix_space", false);
  const nlohmann::json cases = read_json(folder / "cases.json");
  check<FileError>(!cases.empty(), "cases.json has no cases");
  for (const nlohmann::json& golden : cases) {
    const std::string text = golden.at("text");
    const Ids expected = golden.at("ids"), ids = tokenizer.encode(text);
    check_value(ids == expected, "'{}' must become {} but became {}", excerpt(text), first_ids(expected),
                first_ids(ids));
    check_value(!keeps_text || tokenizer.decode(tokenizer.encode(text, {.add_special_tokens = false})) == text,
                "'{}' must come back of its ids", excerpt(text));
  }
  return {};
}

}  // namespace braid::golden
