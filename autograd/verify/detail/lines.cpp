#include <braid/autograd/verify/detail/lines.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include <braid/autograd/verify/detail/differences.h>

namespace braid::detail {
namespace {

/// `blocks.3.mlp.up.weight` belongs to `blocks.3`, `norm.weight` to `norm`.
std::string group_of(const std::string& name) {
  const std::size_t first = name.find('.');
  if (first == name.npos) return "";
  const bool numbered = first + 1 < name.size() && std::isdigit(static_cast<unsigned char>(name[first + 1])) != 0;
  return name.substr(0, numbered ? name.find('.', first + 1) : first);
}

}  // namespace

std::vector<Line> Lines::elements(std::size_t input, std::int64_t begin, std::int64_t end) const {
  const Tensor& x = inputs_[input];
  const std::vector<double> values = x.to_vector<double>(), sizes = scales(x).to_vector<double>();
  double largest = 0;
  for (const double g : gradients_[input].to_vector<double>())
    if (std::isfinite(g)) largest = std::max(largest, std::abs(g));
  const Tensor one = ones(x.shape(), DType::f64);
  std::vector<Line> lines;
  for (std::int64_t i = begin; i < end; ++i) {
    const auto at = static_cast<std::size_t>(i);
    lines.push_back(
        {names_[input], element_name(x.shape(), i), {{input, only(one, i, i + 1)}}, sizes[at], values[at], largest});
  }
  return lines;
}

void Lines::add_input(std::vector<Line>& lines, std::size_t input, Rng& rng) const {
  const Tensor& x = inputs_[input];
  if (x.numel() <= options_.max_elements)
    std::ranges::move(elements(input, 0, x.numel()), std::back_inserter(lines));
  else
    for (int i = 0; i < options_.directions; ++i)
      lines.push_back({names_[input], fmt::format("random direction {}", i), {{input, random_direction(x, rng)}}});
}

Line Lines::joint(const std::string& name, const std::string& group, Rng& rng) const {
  Line line{name, "random direction", {}};
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (group.empty() || group_of(names_[i]) == group)
      line.directions.emplace_back(i, random_direction(inputs_[i], rng));
  return line;
}

std::vector<Line> Lines::all(Rng& rng) const {
  std::vector<Line> lines;
  for (std::size_t i = 0; i < inputs_.size(); ++i) add_input(lines, i, rng);
  std::map<std::string, int> groups;
  for (const std::string& name : names_) ++groups[group_of(name)];
  for (const auto& [group, members] : groups)
    if (!group.empty() && members > 1) lines.push_back(joint(group, group, rng));
  if (inputs_.size() > 1 && !lines.empty()) lines.push_back(all_inputs(rng));
  return lines;
}

}  // namespace braid::detail
