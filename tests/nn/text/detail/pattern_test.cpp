#include <braid/nn/text/detail/pattern.h>

#include <gmock/gmock.h>

#include <braid/core/error.h>
#include <tests/support.h>

namespace braid::nn::detail::pattern_test {
namespace {

using testing::ElementsAre;
using Pieces = std::vector<std::string>;

constexpr const char* kGPT2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

Pieces split(const char* expression, std::string_view text) {
  Pieces pieces;
  Budget work(text.size());
  Pattern(expression).split(text, work, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

std::string refusal(const char* expression) {
  return message_of([&] { Pattern{expression}; });
}

TEST(Pattern, CutsAsGPT2) {
  EXPECT_THAT(split(kGPT2, "I'll DON'T  x=12345\n\n end "),
              ElementsAre("I", "'ll", " DON", "'", "T", " ", " x", "=", "12345", "\n\n", " end", " "));
  EXPECT_THAT(split(kGPT2, "na\u00efve \u65e5\u672c \u0663\u00bd"),
              ElementsAre("na\u00efve", " \u65e5\u672c", " \u0663\u00bd"));
}

TEST(Pattern, CutsAsLlama3) {
  EXPECT_THAT(split(kLlama3, "DON'T  x=12345;\r\n\n end"),
              ElementsAre("DON", "'T", " ", " x", "=", "123", "45", ";\r\n\n", " end"));
}

TEST(Pattern, CutsAsQwen) { EXPECT_THAT(split(kQwen, "x 12\n \n"), ElementsAre("x", " ", "1", "2", "\n \n")); }

TEST(Pattern, KeepsTheTextBetweenMatches) {
  EXPECT_THAT(split("b+", "abbcab"), ElementsAre("a", "bb", "ca", "b"));
  EXPECT_THAT(split("b+", "ac"), ElementsAre("ac"));
  EXPECT_THAT(split("b+", ""), testing::IsEmpty());
  EXPECT_THAT(split(R"((\p{Lu})+)", "aBCd"), ElementsAre("a", "BC", "d"));
}

TEST(Pattern, TakesWhiteSpaceAsUnicodeHasIt) {
  EXPECT_THAT(split(R"(\s+)", "a\u00a0\u0085\u2003b\u180ec\u200bd"),
              ElementsAre("a", "\u00a0\u0085\u2003", "b\u180ec\u200bd"));
  EXPECT_THAT(split(R"([^\s]+)", "a\u180e b"), ElementsAre("a\u180e", " ", "b"));
  EXPECT_THAT(split(R"(\S+)", "a\u180e b"), ElementsAre("a\u180e", " ", "b"));
}

TEST(Pattern, RefusesWhatOnigurumaReadsInAnotherWay) {
  for (const char* expression : {R"(\w+)", R"(\bx)", R"(\h)", R"(\Kx)", R"((x)\1)", R"(\p{Han})", R"(\p{)", R"(x\)",
                                 "^x", "x$", "[a&&b]", "[[:alpha:]]", "(?m)x", "(?<n>x)", "(*UTF)x", R"(\p{N}{1,3}+)"})
    EXPECT_THAT(refusal(expression),
                testing::AllOf(testing::StartsWith("has "), testing::EndsWith(", which is not supported")))
        << expression;
  EXPECT_EQ(refusal(R"(\p{Han}x)"), "has \\p{Han}, which is not supported");
  const std::string long_one = refusal(("\\p{" + std::string(100'000, '\n') + "}").c_str());
  EXPECT_LT(long_one.size(), 200u);
  EXPECT_EQ(long_one.find('\n'), std::string::npos);
  EXPECT_EQ(refusal("a*"), "matches the empty text");
  EXPECT_EQ(refusal("(a"), "is no regular expression: missing closing parenthesis");
}

TEST(Pattern, LooksBackAsFarAsTheQuickCodeMay) {
  EXPECT_THAT(split("(?<=b.{255})a", "b" + std::string(257, 'a')), ElementsAre("b" + std::string(255, 'a'), "a", "a"));
  EXPECT_EQ(refusal("(?<=b.{256})a"), "must look back at most 256 characters but does so 257");
}

TEST(Pattern, EndsWhatWouldTakeForever) {
  const Pattern pattern(R"((?:a+)+[bc])");
  Budget work(60);
  EXPECT_THAT(
      message_of([&] { pattern.split(std::string(60, 'a'), work, [](std::string_view) {}); }),
      testing::StartsWith("encode: the pattern of the pre_tokenizer: a size of 60 bytes allows 65536 steps but "));
}

}  // namespace
}  // namespace braid::nn::detail::pattern_test
