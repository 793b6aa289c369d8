#include <braid/nn/verify/detail/mismatch.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ranges>
#include <span>
#include <utility>

#include <fmt/ranges.h>

namespace braid::nn::detail {
namespace {

/// A value of the tape that may be a recorded part; `layout` permutes its axes first.
struct Candidate {
  const TracedValue* value;
  std::vector<int> layout;  // empty: its elements as they are, row-major
  double error;
};

Tensor in_layout(const Tensor& x, const std::vector<int>& layout) { return layout.empty() ? x : x.permute(layout); }

/// How a tensor of shape `from` may be read as one of shape `to`: as it is, or with axes permuted.
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

/// The first or the last element, at 0 or -1, which no permutation of axes moves.
double corner(Tensor x, int at) {
  while (x.rank() > 0) x = x.select(0, at);
  return x.item();
}

/// Excludes most values without reading all their elements.
bool corners_differ(const Tensor& x, const Tensor& part, double limit) {
  const auto differ = [&](int at) { return std::abs(corner(x, at) - corner(part, at)) > limit; };
  return part.numel() > 0 && (differ(0) || differ(-1));
}

double largest(const Tensor& x) {
  double most = 0;
  for (const double v : x.to_vector<double>()) most = std::max(most, std::abs(v));
  return most;
}

std::string quoted(const std::vector<std::string>& names) { return fmt::format("'{}'", fmt::join(names, "', '")); }

class Mismatch {
 public:
  Mismatch(const RecordedCase& recorded, const Trace& trace, double tolerance)
      : recorded_(recorded), trace_(trace), tolerance_(tolerance) {
    std::set<std::string> shown;  // the parts from which a matching part is computed
    for (const RecordedPart& part : recorded.parts) {
      const Tensor& value = recorded.tensor("part." + part.name);
      parts_.push_back({part, fmt::format("'{}' {}", part.name, value.shape())});
      for (Candidate& c : candidates(value, tolerance * std::max(1.0, largest(value))))
        if (c.error <= tolerance) {
          matched_.insert(c.value);
          parts_.back().matches.push_back(std::move(c));
        }
    }
    for (Part& part : parts_ | std::views::reverse) {
      part.hidden = part.matches.empty() && shown.contains(part.recorded.name);
      if (!part.matches.empty() || part.hidden)
        shown.insert(part.recorded.sources.begin(), part.recorded.sources.end());
    }
  }

  /// A line about the first part that no op has computed although its sources are all right.
  std::string first_part() const {
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
      const std::vector<std::string>& from = part.recorded.sources;
      const std::string sources = from.empty() ? "" : fmt::format(", computed from {}", quoted(from));
      return fmt::format("first part that differs: {}{}: {}{}", part.title, sources, near, note);
    }
    if (unseen.empty())
      return fmt::format("none of the {} parts differs: the difference arises after them", parts_.size());
    return fmt::format("first part that differs: {}, for which no op has an output of its size", quoted(unseen));
  }

  /// A line about the first part, from the output back, whose gradient differs.
  std::string first_gradient() const {
    std::string doubtful;
    for (const Part& part : parts_ | std::views::reverse) {
      const std::vector<Candidate> found = gradients(part);
      if (found.empty()) continue;
      const auto agrees = [&](const Candidate& c) { return c.error <= tolerance_; };
      if (agrees(found.front())) {
        doubtful.clear();
        continue;
      }
      // A later value may be equal because its vjp is wrong, or a view with its own share of the gradient: the parts
      // before it decide.
      const std::string line = gradient_line(part, found.front());
      if (std::ranges::none_of(found, agrees)) return doubtful.empty() ? line : doubtful;
      doubtful = line;
    }
    if (!doubtful.empty()) return doubtful;
    return fmt::format("no gradient of the {} parts differs: the difference arises before them", parts_.size());
  }

 private:
  struct Part {
    const RecordedPart& recorded;
    std::string title;  // 'attention.q' [2, 8, 16]
    std::vector<Candidate> matches{};
    bool hidden = false;  // without a match, but something computed from it has one
  };

  /// The values of the same size, except those whose corners already differ by more than `limit`.
  std::vector<Candidate> candidates(const Tensor& part, double limit) const {
    std::vector<Candidate> found;
    for (const TracedValue& value : trace_.values) {
      if (value.value.numel() != part.numel() || corners_differ(value.value, part, limit)) continue;
      for (std::vector<int>& layout : layouts(value.value.shape(), part.shape())) {
        const double error = relative_error(in_layout(value.value, layout), part);
        found.push_back({&value, std::move(layout), error});
      }
    }
    return found;
  }

  /// The nearest output of an op that matches no other part and runs after those that give the sources of this one.
  std::string closest(const Part& part) const {
    std::size_t last = 0;  // of these
    for (const auto& [source, _, matches, hidden] : parts_)
      if (!matches.empty() && std::ranges::count(part.recorded.sources, source.name) > 0)
        last = std::max(last, matches.front().value->number);
    std::vector<Candidate> near = candidates(recorded_.tensor("part." + part.recorded.name), INFINITY);
    std::erase_if(near, [&](const Candidate& c) { return c.value->number <= last || matched_.contains(c.value); });
    if (near.empty()) return "";
    const auto nan_last = [](const Candidate& c) { return std::pair(std::isnan(c.error), c.error); };
    const auto nearest = std::ranges::min_element(near, {}, nan_last);
    return formatted("closest is the output of {}, off by {:.1e}", op_of(*nearest), nearest->error);
  }

  /// op 'linear' (#3 of 40)
  std::string op_of(const Candidate& candidate) const {
    return fmt::format("op '{}' (#{} of {})", candidate.value->op, candidate.value->number, trace_.ops);
  }

  /// The values that match a part, with the errors of their cotangents.
  std::vector<Candidate> gradients(const Part& part) const {
    std::vector<Candidate> found;
    const auto expected = recorded_.tensors.find("part_grad." + part.recorded.name);
    if (expected == recorded_.tensors.end()) return found;
    for (const auto& [value, layout, _] : part.matches) {
      if (value->op.empty() || value->deferred) continue;
      const Tensor& x = value->value;
      const Tensor dy = value->cotangent.defined() ? value->cotangent : zeros(x.shape(), x.dtype());
      found.push_back({value, layout, relative_error(in_layout(dy, layout), expected->second)});
    }
    return found;
  }

  std::string gradient_line(const Part& part, const Candidate& gradient) const {
    const std::vector<std::string>& users = gradient.value->users;
    return formatted(
        "first gradient that differs (from the output back): that of {}, the output of {}, off by {:.1e}; {}",
        part.title, op_of(gradient), gradient.error,
        users.empty() ? "nothing takes it" : fmt::format("it comes through {}", fmt::join(users, ", ")));
  }

  const RecordedCase& recorded_;
  const Trace& trace_;
  double tolerance_;
  std::vector<Part> parts_;
  std::set<const TracedValue*> matched_;  // by any part
};

}  // namespace

Trace::Trace(const braid::detail::Recording& recording) {
  for (const auto& op : recording.ops) {
    const bool watched = op.inputs.empty();
    if (!watched) ++ops;
    for (const auto& input : op.inputs)
      if (input) values[*input].users.push_back(fmt::format("'{}' (#{})", op.name, ops));
    if (op.deferral && op.inputs[op.deferral->input]) values[*op.inputs[op.deferral->input]].deferred = true;
    for (const Tensor& result : op.results) values.push_back({watched ? "" : op.name, ops, result});
  }
  for (const auto& op : recording.ops) {
    const std::span made = std::span(values).subspan(op.first_output, op.dys.size());
    const bool handed = std::ranges::any_of(made, &TracedValue::deferred);
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i].cotangent = op.dys[i];
      made[i].deferred |= handed && !op.dys[i].defined();
    }
  }
}

std::string first_mismatch(const RecordedCase& recorded, const Trace& trace, double tolerance, bool outputs_agree) {
  const Mismatch mismatch(recorded, trace, tolerance);
  return outputs_agree ? mismatch.first_gradient() : mismatch.first_part();
}

}  // namespace braid::nn::detail
