#include <braid/nn/summary.h>

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

namespace braid::nn {

/// 10646784 -> 10,646,784
static std::string with_commas(std::int64_t n) {
  std::string digits = std::to_string(n);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string detail::summary(const std::vector<NamedParam>& params, std::int64_t idle, const std::vector<bool>& used) {
  std::vector<std::array<std::string, 4>> lines{{"parameter", "shape", "count", ""}};
  std::int64_t total = 0;
  for (std::size_t i = 0; i < params.size(); ++i) {
    const Var& param = *params[i].param;
    total += param.value().numel();
    const char* mark = used.empty() || used[i] ? "" : "  not used";
    lines.push_back({params[i].name, to_string(param.shape()), with_commas(param.value().numel()), mark});
  }
  lines.push_back({"total", "", with_commas(total), ""});
  if (idle > 0) lines.push_back({"of a token", "", with_commas(total - idle), ""});

  std::array<std::size_t, 3> widths{};
  for (const auto& line : lines)
    for (std::size_t i = 0; i < 3; ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string table;
  for (const auto& [name, shape, count, mark] : lines)
    fmt::format_to(std::back_inserter(table), "{:<{}}  {:<{}}  {:>{}}{}\n", name, widths[0], shape, widths[1], count,
                   widths[2], mark);
  return table;
}

}  // namespace braid::nn
