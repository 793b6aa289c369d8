#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace braid::detail {

/// The code point at text[at], behind which `at` moves; none, and `at` stays, where that is no UTF-8 of RFC 3629:
/// no overlong forms, no surrogates, nothing above U+10FFFF.
std::optional<char32_t> next_code_point(std::string_view text, std::size_t& at);

bool is_utf8(std::string_view text);

void append_utf8(std::string& text, char32_t point);

}  // namespace braid::detail
