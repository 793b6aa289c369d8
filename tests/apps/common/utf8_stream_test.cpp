#include "../../../apps/common/utf8_stream.h"

#include <gtest/gtest.h>

#include <braid/core/random.h>
#include <braid/core/utf8.h>

namespace braid::apps {
namespace {

TEST(UTF8Stream, HoldsBackWhatIsNotComplete) {
  UTF8Stream stream;
  EXPECT_EQ(stream.push("a\xE6"), "a");
  EXPECT_EQ(stream.push("\x97"), "");
  EXPECT_EQ(stream.push("\xA5\xF0\x9F"), "\u65e5");
  EXPECT_EQ(stream.push("\x99\x82"), "\U0001F642");
  EXPECT_EQ(stream.finish(), "");
  EXPECT_EQ(stream.push("\xC3"), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(UTF8Stream, ReplacesMaximalSubparts) {
  EXPECT_EQ(valid_utf8("\x80"), "\uFFFD");
  EXPECT_EQ(valid_utf8("\xC0\xAF"), "\uFFFD\uFFFD");
  EXPECT_EQ(valid_utf8("\xE0\x80\xAF"), "\uFFFD\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(valid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");            // a surrogate
  EXPECT_EQ(valid_utf8("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // above U+10FFFF
  EXPECT_EQ(valid_utf8("\xE6\x97z"), "\uFFFDz");
  EXPECT_EQ(valid_utf8("\xE6\xC0\x97\xE6\x97\xC0"), "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(valid_utf8("\xEC\xBF\xBF\xED\x9F\xBF\xF4\x8F\xBF\xBF"), "\uCFFF\uD7FF\U0010FFFF");
  EXPECT_EQ(valid_utf8("\xF0\x9F\x99\xC3\xA9"), "\uFFFD\u00E9");
  EXPECT_EQ(valid_utf8("\xF5\xFF"), "\uFFFD\uFFFD");
}

TEST(UTF8Stream, GivesTheSameHoweverTheBytesAreCut) {
  Rng rng(1);
  for (int trial = 0; trial < 500; ++trial) {
    std::string bytes, pieces;
    for (auto n = rng.below(20); n > 0; --n) {
      if (rng.below(3) == 0)
        bytes += static_cast<char>(rng.below(256));
      else
        append_utf8(bytes, static_cast<char32_t>(rng.below(0xD800)));
    }
    UTF8Stream stream;
    for (const char byte : bytes) pieces += stream.push({&byte, 1});
    pieces += stream.finish();
    EXPECT_EQ(pieces, valid_utf8(bytes));
    EXPECT_TRUE(is_utf8(pieces));
    if (is_utf8(bytes)) {
      EXPECT_EQ(pieces, bytes);
    }
  }
}

}  // namespace
}  // namespace braid::apps
