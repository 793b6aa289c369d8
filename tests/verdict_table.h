#pragma once
#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include <braid/autograd/verify/gradcheck.h>

namespace braid {

/// What gradcheck says of functions at many points, kinks included.
class VerdictTable {
 public:
  /// Adds a point of the function that is called `name`.
  void add(const std::string& name, const GradcheckResult& result) {
    GradcheckResult& sum = sums_[name];
    sum.worst = std::max(sum.worst, result.worst);
    sum.derivatives += result.derivatives;
    sum.wrong += result.wrong + (!result.ok && result.wrong + result.unchecked == 0);
    sum.undecidable += result.undecidable;
    sum.kinks += result.kinks;
    sum.unchecked += result.unchecked;
  }

  /// Whether none is wrong.
  bool ok() const {
    return std::ranges::all_of(sums_, [](const auto& sum) { return sum.second.wrong == 0; });
  }

  /// A line for each function, and one for all.
  std::string text() const {
    std::string lines = fmt::format("{:<28}{:>12}{:>8}{:>13}{:>10}{:>11}{:>10}\n", "", "derivatives", "wrong",
                                    "undecidable", "at kinks", "unchecked", "worst");
    GradcheckResult all;
    const auto add_line = [&](const std::string& name, const GradcheckResult& sum) {
      lines += fmt::format("{:<28}{:>12}{:>8}{:>13}{:>10}{:>11}{:>10.1e}\n", name, sum.derivatives, sum.wrong,
                           sum.undecidable, sum.kinks, sum.unchecked, sum.worst);
    };
    for (const auto& [name, sum] : sums_) {
      add_line(name, sum);
      all.worst = std::max(all.worst, sum.worst);
      all.derivatives += sum.derivatives;
      all.wrong += sum.wrong;
      all.undecidable += sum.undecidable;
      all.kinks += sum.kinks;
      all.unchecked += sum.unchecked;
    }
    add_line("all", all);
    return lines;
  }

 private:
  std::map<std::string, GradcheckResult> sums_;
};

}  // namespace braid
