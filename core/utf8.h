#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace braid {

/// The code point at text[at], which advances `at` past it. nullopt, with `at` unchanged, if the bytes are not UTF-8 by
/// RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
std::optional<char32_t> next_code_point(std::string_view text, std::size_t& at);

/// Whether all of the text is UTF-8.
bool is_utf8(std::string_view text);

/// Appends a code point to the text.
void append_utf8(std::string& text, char32_t point);

/// The text as a JSON string, in quotes: printable ASCII and escapes. A byte that is not UTF-8 becomes U+FFFD.
std::string json_string(std::string_view text);

/// The text, cut to 77 characters and "..." if it is longer than 80.
std::string shortened(std::string text);

/// Text of a file as error messages quote it: shortened, on one line, in printable ASCII with JSON's escapes.
std::string excerpt(std::string_view text);

}  // namespace braid
