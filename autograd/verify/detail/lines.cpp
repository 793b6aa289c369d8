#include <braid/autograd/verify/detail/lines.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include <braid/autograd/verify/detail/differences.h>
#include <braid/core/map.h>

namespace braid::detail {

/// `blocks.3.mlp.up.weight` belongs to `blocks.3`, `norm.weight` to `norm`.
static std::string group_of(const std::string& name) {
  const std::size_t first = name.find('.');
  if (first == name.npos) return "";
  const bool numbered = first + 1 < name.size() && std::isdigit(static_cast<unsigned char>(name[first + 1])) != 0;
  return name.substr(0, numbered ? name.find('.', first + 1) : first);
}

std::vector<Line> lines_through(const Subject& subject, Rng& rng) {
  std::vector<Line> lines;
  for (std::size_t i = 0; i < subject.inputs.size(); ++i) {
    const Tensor& x = subject.inputs[i];
    if (x.numel() <= subject.options.max_elements)
      for (std::int64_t k = 0; k < x.numel(); ++k) lines.push_back(line_of_element(subject, i, k));
    else
      for (int k = 0; k < subject.options.directions; ++k)
        lines.push_back({subject.names[i], fmt::format("random direction {}", k), {{i, random_direction(x, rng)}}});
  }
  std::map<std::string, int> groups;
  for (const std::string& name : subject.names) ++groups[group_of(name)];
  for (const auto& [group, members] : groups)
    if (!group.empty() && members > 1) lines.push_back(line_of_all(subject, rng, group));
  if (subject.inputs.size() > 1 && !lines.empty()) lines.push_back(line_of_all(subject, rng));
  return lines;
}

Line line_of_element(const Subject& subject, std::size_t input, std::int64_t element) {
  const Tensor& x = subject.inputs[input];
  const Tensor direction = only(ones(x.shape(), DType::f64), element, element + 1);
  Line line{subject.names[input], element_name(x.shape(), element), {{input, direction}}};
  line.scale = scales(x).to_vector<double>()[element];
  line.from = x.to_vector<double>()[element];
  line.size = std::abs(line.from);
  for (const double g : subject.gradients[input].to_vector<double>())
    if (std::isfinite(g)) line.largest = std::max(line.largest, std::abs(g));
  return line;
}

Line line_of_all(const Subject& subject, Rng& rng, const std::string& group) {
  Line line{group.empty() ? "all together" : group, "random direction", {}};
  for (std::size_t i = 0; i < subject.inputs.size(); ++i)
    if (group.empty() || group_of(subject.names[i]) == group)
      line.directions.emplace_back(i, random_direction(subject.inputs[i], rng));
  return line;
}

Line in_own_steps(const Subject& subject, Line line) {
  for (auto& [input, direction] : line.directions) {
    const Tensor& x = subject.inputs[input];
    const auto own = [](auto d, auto x, auto scale) { return x == 0 ? d : d * std::abs(x) / scale; };
    direction = map("gradcheck", own, direction, x, scales(x));
  }
  return line;
}

}  // namespace braid::detail
