#include <braid/nn/detail/differences.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ranges>

#include <fmt/ranges.h>

#include <braid/nn/verify.h>

namespace braid::nn::detail {
namespace {

Tensor in_layout(const Tensor& x, const std::vector<int>& layout) { return layout.empty() ? x : x.permute(layout); }

/// How a tensor of shape `from` may be read as one of shape `to`: as it stands, or with axes permuted.
std::vector<std::vector<int>> layouts(const Shape& from, const Shape& to) {
  std::vector<std::vector<int>> found{{}};
  if (from.rank() != to.rank() || from.rank() > 4) return found;
  std::vector<int> axes(static_cast<std::size_t>(from.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  while (std::ranges::next_permutation(axes).found)
    if (std::ranges::equal(axes | std::views::transform([&](int axis) { return from[axis]; }), to))
      found.push_back(axes);
  return found;
}

/// The one with the least error, an error that is a number before NaN.
const Candidate* best(const std::vector<Candidate>& candidates) {
  const Candidate* best = nullptr;
  for (const Candidate& c : candidates)
    if (best == nullptr || c.error < best->error || (std::isnan(best->error) && !std::isnan(c.error))) best = &c;
  return best;
}

std::string quoted(const std::vector<std::string>& names) { return fmt::format("'{}'", fmt::join(names, "', '")); }

}  // namespace

Differences::Differences(const RecordedCase& recorded, const Trace& trace, double tolerance)
    : recorded_(recorded), trace_(trace), tolerance_(tolerance) {
  std::set<std::string> shown;  // of whatever is computed from these, something has a match
  for (const RecordedPart& part : recorded.parts) {
    const Tensor& value = recorded.tensor("part." + part.name);
    parts_.push_back({part, fmt::format("'{}' {}", part.name, value.shape())});
    for (Candidate& c : candidates(value))
      if (c.error <= tolerance) parts_.back().matches.push_back(std::move(c));
  }
  for (Part& part : parts_ | std::views::reverse) {
    part.hidden = part.matches.empty() && shown.contains(part.recorded.name);
    if (!part.matches.empty() || part.hidden) shown.insert(part.recorded.sources.begin(), part.recorded.sources.end());
  }
}

std::vector<Candidate> Differences::candidates(const Tensor& part) const {
  std::vector<Candidate> found;
  for (const TracedValue& value : trace_.values()) {
    if (value.value.numel() != part.numel()) continue;
    for (std::vector<int>& layout : layouts(value.value.shape(), part.shape())) {
      const double error = relative_error(in_layout(value.value, layout), part);
      found.push_back({&value, std::move(layout), error});
    }
  }
  return found;
}

/// The nearest output of an op that is no other part.
std::string Differences::closest(const Part& part) const {
  std::vector<Candidate> near = candidates(recorded_.tensor("part." + part.recorded.name));
  std::erase_if(near, [&](const Candidate& c) {
    const auto is_it = [&](const Candidate& match) { return match.value == c.value; };
    return c.value->op.empty() ||
           std::ranges::any_of(parts_, [&](const Part& p) { return std::ranges::any_of(p.matches, is_it); });
  });
  const Candidate* nearest = best(near);
  if (nearest == nullptr) return "";
  return fmt::format("closest is the output of {}, off by {:.1e}", op_of(*nearest), nearest->error);
}

std::string Differences::op_of(const Candidate& candidate) const {
  return fmt::format("op '{}' (#{} of {})", candidate.value->op, candidate.value->number, trace_.ops());
}

std::string Differences::sources(const Part& part) const {
  if (part.recorded.sources.empty()) return "";
  return fmt::format(", computed from {}", quoted(part.recorded.sources));
}

std::string Differences::first_part() const {
  std::vector<std::string> unseen;
  for (const Part& part : parts_) {
    if (!part.matches.empty() || part.hidden) continue;
    const std::string near = closest(part);
    if (near.empty()) {
      unseen.push_back(part.recorded.name);
      continue;
    }
    const std::string note =
        unseen.empty() ? "" : fmt::format("; or before it {}, which no op gives by itself", quoted(unseen));
    return fmt::format("first part that differs: {}{}: {}{}", part.title, sources(part), near, note);
  }
  if (unseen.empty()) return fmt::format("none of the {} parts differs: look behind them", parts_.size());
  return fmt::format("first part that differs: {}, for which no op has an output of its size", quoted(unseen));
}

std::string Differences::first_gradient() const {
  for (const Part& part : parts_ | std::views::reverse) {
    const auto expected = recorded_.tensors.find("part_grad." + part.recorded.name);
    if (expected == recorded_.tensors.end()) continue;
    std::vector<Candidate> gradients;
    for (const auto& [value, layout, _] : part.matches) {
      if (value->op.empty() || value->deferred) continue;
      const Tensor dy =
          value->cotangent.defined() ? value->cotangent : zeros(value->value.shape(), value->value.dtype());
      gradients.push_back({value, layout, relative_error(in_layout(dy, layout), expected->second)});
    }
    const Candidate* nearest = best(gradients);
    if (nearest == nullptr || nearest->error <= tolerance_) continue;
    const std::vector<std::string>& users = nearest->value->users;
    return fmt::format(
        "first gradient that differs (from the output back): that of {}, the output of {}, off by {:.1e}; {}",
        part.title, op_of(*nearest), nearest->error,
        users.empty() ? "nothing takes it" : fmt::format("it comes from {}", fmt::join(users, ", ")));
  }
  return fmt::format("no gradient of the {} parts differs: look at the vjps before them", parts_.size());
}

}  // namespace braid::nn::detail
