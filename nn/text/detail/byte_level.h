#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace braid::nn::detail {

/// The bytes that a token of a vocabulary encodes. GPT-2 writes each byte as one character: a printable one of
/// Latin-1 as itself, another one as a character from U+0100 on. nullopt when the text has other characters.
std::optional<std::string> bytes_of_token(std::string_view text);

}  // namespace braid::nn::detail
