#include <braid/core/utf8.h>

#include <string>

#include <gtest/gtest.h>

namespace braid::utf8_test {
namespace {

TEST(JsonString, QuotesAndEscapes) {
  EXPECT_EQ(json_string(""), R"("")");
  EXPECT_EQ(json_string(" ~"), R"(" ~")");
  EXPECT_EQ(json_string("a\"b\\c/d"), R"("a\"b\\c/d")");
  EXPECT_EQ(json_string("\b\f\n\r\t\x1f\x7f"), R"("\b\f\n\r\t\u001f\u007f")");
  EXPECT_EQ(json_string(std::string_view("\0", 1)), R"("\u0000")");
}

TEST(JsonString, IsAscii) {
  EXPECT_EQ(json_string("\xc3\xa9\xef\xbf\xbf"), R"("\u00e9\uffff")");
  EXPECT_EQ(json_string("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"), R"("\ud800\udc00\udbff\udfff")");
  EXPECT_EQ(json_string("a\xff\xc3"), R"("a\ufffd\ufffd")");
}

TEST(AppendUTF8, WritesAsManyBytesAsACodePointNeeds) {
  std::string text;
  for (const char32_t point : {U'\x7f', U'\x80', U'\x7ff', U'\x800', U'\xffff', U'\x10000', U'\x10ffff'})
    append_utf8(text, point);
  EXPECT_EQ(text, "\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
}

TEST(Shortened, KeepsTextOf80Characters) {
  EXPECT_EQ(shortened(std::string(80, 'x')), std::string(80, 'x'));
  EXPECT_EQ(shortened(std::string(81, 'x')), std::string(77, 'x') + "...");
}

}  // namespace
}  // namespace braid::utf8_test
