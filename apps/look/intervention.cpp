#include "intervention.h"

#include <optional>
#include <regex>
#include <string_view>

#include <braid/core/error.h>
#include <braid/core/utf8.h>

#include "../common/parse_number.h"

namespace braid::look {
namespace {

constexpr std::int64_t kAllSites = -1;  // as `last`, until complete()

std::string form_of(const std::string& verb) {
  if (verb == "swap") return "stream:I:J or stream:I:J@SITE or stream:I:J@SITE-SITE";
  const std::string_view factor = verb == "scale" ? ":FACTOR" : "";
  return fmt::format("stream:I{0}, stream:I@SITE{0}, stream:I@SITE-SITE{0}, write:SITE{0} or path:SITE:SITE{0}",
                     factor);
}

/// Moves the factor at the end of `text` to `change`; false if there is none.
bool take_factor(std::string& text, Intervention& change) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos) return false;
  const auto factor = apps::parse_number<double>(text.substr(colon + 1));
  text.resize(colon);
  change.factor = factor.value_or(0);
  return factor.has_value();
}

/// Reads a target without its factor; false if it is none.
bool read_target(const std::string& text, Intervention& change) {
  static const std::regex stream(R"(stream:(\d{1,9})(?::(\d{1,9}))?(?:@(\d{1,9})(?:-(\d{1,9}))?)?)"),
      write(R"(write:(\d{1,9}))"), path(R"(path:(\d{1,9}):(\d{1,9}))");
  std::smatch found;
  const auto number = [&](std::size_t group) { return std::stoll(found[group]); };
  const bool swaps = change.action == Action::swap;
  if (std::regex_match(text, found, stream) && found[2].matched == swaps) {
    change.index = number(1);
    if (swaps) change.other = number(2);
    change.first = found[3].matched ? number(3) : 0;
    change.last = found[4].matched ? number(4) : found[3].matched ? change.first : kAllSites;
    return true;
  }
  if (swaps) return false;
  change.target = Target::write;
  if (std::regex_match(text, found, write)) return change.index = number(1), true;
  change.target = Target::path;
  if (!std::regex_match(text, found, path)) return false;
  change.index = number(1);
  change.other = number(2);
  return true;
}

}  // namespace

Intervention parse_intervention(const std::string& verb, const std::string& value) {
  Intervention change{.text = verb + " " + value};
  if (verb == "swap") change.action = Action::swap;
  if (verb == "rescue") change.action = Action::rescue;
  std::string text = value;
  const bool good = (verb != "scale" || take_factor(text, change)) && read_target(text, change);
  check_value(good, "--{}: must be {} but is '{}'", verb, form_of(verb), shortened(value));
  return change;
}

void complete(Intervention& change, std::int64_t streams, std::int64_t connections) {
  const auto require = [&](const char* what, std::int64_t number, std::int64_t least, std::int64_t most) {
    check_value(least <= number && number <= most, "--{}: {} must be in [{}, {}] but is {}", change.text, what, least,
                most, number);
  };
  if (change.target == Target::stream) {
    require("a stream", change.index, 0, streams - 1);
    require("a stream", change.other, 0, streams - 1);
    if (change.last == kAllSites) change.last = connections;
    require("the first site", change.first, 0, connections);
    require("the last site", change.last, change.first, connections);
  } else {
    require("the site of the write", change.index, 0, connections - 1);
    if (change.target == Target::path) require("the end of the path", change.other, change.index + 1, connections);
  }
}

}  // namespace braid::look
