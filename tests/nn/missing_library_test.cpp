// What a build of nn without a library says; see tests/core/missing_library_test.cpp.
#include <map>
#include <string>

#include <gmock/gmock.h>

#include <braid/core/error.h>
#include <braid/nn/pretrained/config.h>
#include <braid/nn/text/tokenizer.h>
#include <braid/nn/verify/recorded_case.h>

namespace braid::nn::missing_library_test {
namespace {

[[maybe_unused]] void expect_missing(const auto& function, const std::string& library) {
  EXPECT_THAT(function, testing::ThrowsMessage<MissingLibrary>(testing::HasSubstr("without " + library)));
}

#ifndef BRAID_HAS_TEXT
TEST(MissingLibrary, IsThrownByTokenizers) {
  expect_missing([] { Tokenizer::load("tokenizer.json"); }, BRAID_LACKS_TEXT);
  expect_missing([] { Tokenizer::parse("{}"); }, BRAID_LACKS_TEXT);
}
#endif

#ifndef BRAID_HAS_JSON
TEST(MissingLibrary, IsThrownByWhatReadsJson) {
  expect_missing([] { parse_pretrained_config("config.json", "{}"); }, "nlohmann-json");
  expect_missing([] { format_pretrained_config({}, DType::f32); }, "nlohmann-json");
  expect_missing([] { detail::parse_shard_index("index.json", "{}"); }, "nlohmann-json");
  expect_missing([] { CaseSettings(std::map<std::string, std::string>{{"n", "4"}}).integer("n"); }, "nlohmann-json");
}
#endif

}  // namespace
}  // namespace braid::nn::missing_library_test
