#include <braid/nn/text/detail/pattern.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <new>
#include <utility>

#include <braid/core/utf8.h>

namespace braid::nn::detail {
namespace {

constexpr std::size_t kWindow = 256;  // bytes that the quick code sees of a text, and characters that it looks back

/// The length of the first piece of `rest`, which starts with a backslash.
std::size_t escape(std::string_view rest) {
  const char kind = rest.size() > 1 ? rest[1] : '\0';
  if ((kind == 'p' || kind == 'P') && rest.substr(2, 1) == "{") {
    const std::size_t length = rest.find('}') + 1;  // a category such as {Lu}: PCRE2 treats scripts differently
    check_value(length >= 5 && length <= 6, "has \\{}, which is not supported",
                excerpt(rest.substr(1, std::max<std::size_t>(length, 3) - 1)));
    return length;
  }
  const bool letter = std::isalnum(static_cast<unsigned char>(kind)) != 0;
  const bool alike = kind != '\0' && (!letter || std::string_view("rntdDpPsS").find(kind) != rest.npos);
  check_value(alike, "has {}, which is not supported", rest.substr(0, 2));
  return 2;
}

/// The same of `rest` that starts with a parenthesis.
std::size_t group(std::string_view rest) {
  constexpr std::array<std::string_view, 7> kAlike = {"(?:", "(?=", "(?!", "(?>", "(?i:", "(?<=", "(?<!"};
  const auto found = std::ranges::find_if(kAlike, [&](std::string_view start) { return rest.starts_with(start); });
  if (found != kAlike.end()) return found->size();
  check_value(!rest.starts_with("(?") && !rest.starts_with("(*"), "has {}, which is not supported", rest.substr(0, 3));
  return 1;
}

/// The same of any other `rest`.
std::size_t plain(std::string_view rest, bool in_class) {
  for (const std::string_view unlike : in_class ? std::array{"[", "&&", "&&"} : std::array{"^", "$", "}+"})
    check_value(!rest.starts_with(unlike), "has {}{}, which is not supported", unlike, in_class ? " in brackets" : "");
  return rest.starts_with("[^") && !in_class ? 2 : 1;
}

/// The same expression for PCRE2. Throws ValueError where Oniguruma and PCRE2 read it differently.
std::string for_pcre2(std::string_view rest) {
  std::string out;
  for (bool in_class = false; !rest.empty();) {
    const char c = rest[0];
    const std::size_t length = c == '\\' ? escape(rest) : c == '(' && !in_class ? group(rest) : plain(rest, in_class);
    const std::string_view piece = rest.substr(0, length);
    if (c == '[' || c == ']') in_class = c == '[';
    // PCRE2's \s includes U+180E, which is no white space since Unicode 6.3.
    out += piece == "\\s" ? "\\p{White_Space}" : piece == "\\S" ? "\\P{White_Space}" : piece;
    rest.remove_prefix(length);
  }
  return out;
}

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 128> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

PCRE2_SPTR bytes(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

std::shared_ptr<const pcre2_code> compile(const std::string& expression, std::uint32_t options) {
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* code = pcre2_compile(bytes(expression), expression.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | options, &error, &at, nullptr);
  check_value(code != nullptr, "is no regular expression: {}", message_of(error));
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE | PCRE2_JIT_PARTIAL_HARD);  // on failure, matching is only slower
  return {code, pcre2_code_free};
}

/// The steps of a match are the items of the expression that are tried and the characters that they pass over.
struct Steps {
  Budget& work;
  std::size_t at;

  static int count(pcre2_callout_block* block, void* steps) {
    auto& [work, at] = *static_cast<Steps*>(steps);
    const std::size_t from = std::exchange(at, block->current_position);
    return work.spend(1 + std::max(from, at) - std::min(from, at)) ? 0 : PCRE2_ERROR_CALLOUT;
  }
};

int match_and_count(const pcre2_code* code, std::string_view text, std::size_t at, pcre2_match_data* match,
                    Budget& work) {
  Steps steps{work, at};
  const std::unique_ptr<pcre2_match_context, void (*)(pcre2_match_context*)> context(
      pcre2_match_context_create(nullptr), pcre2_match_context_free);
  if (!context) throw std::bad_alloc();
  pcre2_set_callout(context.get(), Steps::count, &steps);
  return pcre2_match(code, bytes(text), text.size(), at, PCRE2_NO_UTF_CHECK, match, context.get());
}

}  // namespace

// Counting takes as long as matching itself. The quick code does not count, but gives up early: it ends with a partial
// match where the text after a window would matter, and after some attempts.
Pattern::Pattern(const std::string& expression) {
  const std::string translated = for_pcre2(expression);
  counting_ = compile("(*LIMIT_HEAP=65536)" + translated, PCRE2_AUTO_CALLOUT);
  const auto quick = compile("(*LIMIT_MATCH=1000)" + translated, 0);
  std::uint32_t matches_nothing = 0, back = 0;
  pcre2_pattern_info(quick.get(), PCRE2_INFO_MATCHEMPTY, &matches_nothing);
  pcre2_pattern_info(quick.get(), PCRE2_INFO_MAXLOOKBEHIND, &back);
  check_value(matches_nothing == 0, "matches the empty text");
  check_value(back <= kWindow, "must look back at most {} characters but does so {}", kWindow, back);
  quick_ = quick;
}

void Pattern::split(std::string_view text, Budget& work, const std::function<void(std::string_view)>& use) const {
  const auto *quick = static_cast<const pcre2_code*>(quick_.get()),
             *counting = static_cast<const pcre2_code*>(counting_.get());
  const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> match(pcre2_match_data_create(1, nullptr),
                                                                             pcre2_match_data_free);
  if (!match) throw std::bad_alloc();
  const PCRE2_SIZE* place = pcre2_get_ovector_pointer(match.get());
  for (std::size_t at = 0; at < text.size(); at = place[1]) {
    std::size_t end = std::min(text.size(), at + kWindow);
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // inside a character
    const std::uint32_t options = PCRE2_NO_UTF_CHECK | (end < text.size() ? PCRE2_PARTIAL_HARD : 0);
    int found = pcre2_match(quick, bytes(text), end, at, options, match.get(), nullptr);
    if (found < 0) found = match_and_count(counting, text, at, match.get(), work);
    if (found == PCRE2_ERROR_NOMATCH) return use(text.substr(at));
    if (found == PCRE2_ERROR_CALLOUT) work.spend<ValueError>(0, "encode: the pattern of the pre_tokenizer", "steps");
    check_value(found >= 0, "encode: the pattern of the pre_tokenizer ends at byte {}: {}", at, message_of(found));
    if (place[0] > at) use(text.substr(at, place[0] - at));
    use(text.substr(place[0], place[1] - place[0]));
  }
}

}  // namespace braid::nn::detail
