#include "ledgers.h"

#include <algorithm>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <braid/core/error.h>
#include <braid/core/utf8.h>

#include "../common/json_lines.h"
#include "../common/progress.h"
#include "../common/read_file.h"
#include "../train_lm/folder.h"
#include "../train_lm/replay.h"

namespace braid::compare_runs {
namespace {

namespace fs = std::filesystem;

/// The first line in which the texts of two runs differ, as the files are now; nothing if one is not here.
void say_different_texts(const nlohmann::json& a, const nlohmann::json& b) {
  std::vector<std::string> texts;
  for (const nlohmann::json* settings : {&a, &b}) {
    const nlohmann::json text = settings->value("text", nlohmann::json());
    const std::string path = text.is_string() ? text.get<std::string>() : "";
    std::error_code no_path;
    if (path.ends_with(".bin") || !fs::is_regular_file(path, no_path)) return;
    texts.push_back(apps::read_file(path));
  }
  if (texts[0] == texts[1]) return;
  const auto at = static_cast<std::size_t>(std::ranges::mismatch(texts[0], texts[1]).in1 - texts[0].begin());
  const std::string_view before = std::string_view(texts[0]).substr(0, at);
  const std::size_t from = std::max(before.rfind('\n') + 1, at - std::min(at, std::size_t{30}));
  const auto part = [&](const std::string& text) {
    return at == text.size() ? "its end" : fmt::format("'{}'", excerpt(text.substr(from, text.find('\n', at) - from)));
  };
  apps::say("texts differ from line {} on: {} and {}\n", 1 + std::ranges::count(before, '\n'), part(texts[0]),
            part(texts[1]));
}

/// The steps from `first`, which no line precedes, to `last` that a ledger lacks, as `3, 5 to 8`.
std::string missing_steps(const train_lm::Ledger& ledger, std::int64_t first, std::int64_t last) {
  std::vector<std::string> gaps;
  std::int64_t next = first;
  const auto reach = [&](std::int64_t step) {
    if (next < step) gaps.push_back(fmt::format("{}{}", next, next + 1 < step ? fmt::format(" to {}", step - 1) : ""));
    next = step + 1;
  };
  for (const auto& [step, line] : ledger)
    if (step <= last) reach(step);
  reach(last + 1);
  return shortened(fmt::format("{}", fmt::join(gaps, ", ")));
}

/// The last step that a run has computed, whether its ledger has it or not.
std::int64_t last_step(const fs::path& run, const train_lm::Ledger& ledger) {
  const fs::path metrics = train_lm::Folder{run}.metrics();
  const std::int64_t known = fs::exists(metrics) ? apps::json_lines_until(metrics, INT64_MAX).last_step : 0;
  return std::max(known, ledger.rbegin()->first);
}

}  // namespace

void say_different_settings(const nlohmann::json& a, const nlohmann::json& b) {
  const std::vector<std::string> different = train_lm::different_settings(a, b);
  if (!different.empty()) apps::say("settings differ: {}\n", fmt::join(different, ", "));
  const auto checksum = [](const nlohmann::json& settings) {
    return settings.value("text_checksum", nlohmann::json());
  };
  if (checksum(a) != checksum(b)) say_different_texts(a, b);
}

std::string first_part(const nlohmann::json& a, const nlohmann::json& b) {
  for (const char* part : {"step", "loss", "gradients", "parameters"})
    if (a.value(part, nlohmann::json()) != b.value(part, nlohmann::json())) return part;
  return "";
}

std::optional<std::int64_t> first_step(const fs::path& a, const fs::path& b) {
  const train_lm::Ledger in_a = train_lm::ledger_of(a), in_b = train_lm::ledger_of(b);
  std::vector<std::int64_t> both;
  for (const auto& [step, line] : in_a)
    if (in_b.contains(step)) both.push_back(step);
  check_value(!both.empty(), "{}: the ledgers have no step in common", a.string());
  const std::int64_t first = std::min(in_a.begin()->first, in_b.begin()->first);
  const std::int64_t end_of_a = last_step(a, in_a), end_of_b = last_step(b, in_b);
  bool complete = true;
  for (const auto& [folder, ledger] : {std::pair(&a, &in_a), {&b, &in_b}})
    if (const std::string missing = missing_steps(*ledger, first, std::min(end_of_a, end_of_b)); !missing.empty()) {
      apps::say("{}: the ledger lacks steps {}\n", folder->string(), missing);
      complete = false;
    }
  const auto differs = std::ranges::find_if(both, [&](std::int64_t step) { return in_a.at(step) != in_b.at(step); });
  if (differs != both.begin())
    apps::say("steps {} to {}{} have the same bits\n", both.front(), *(differs - 1),
              complete ? "" : ", as far as both ledgers have them,");
  if (differs == both.end()) {
    if (end_of_a != end_of_b)
      apps::say("{} goes on to step {}\n", (end_of_a > end_of_b ? a : b).string(), std::max(end_of_a, end_of_b));
    return std::nullopt;
  }
  const std::string part = first_part(in_a.at(*differs), in_b.at(*differs));
  const auto loss = [&](const train_lm::Ledger& ledger) {
    return shortened(ledger.at(*differs).value(part, nlohmann::json()).dump());
  };
  if (part == "loss")
    apps::say("step {}: loss {} against {}\n", *differs, loss(in_a), loss(in_b));
  else
    apps::say("step {}: {} differ\n", *differs, part);
  return *differs;
}

}  // namespace braid::compare_runs
