#include <braid/nn/saving.h>

#include <set>

#include <fmt/ranges.h>

#include <braid/core/utf8.h>

namespace braid::nn {

/// Why `tensor` cannot become `target`; empty if it can.
static std::string misfit(const std::string& name, const Tensor& target, const Tensor& tensor) {
  if (tensor.shape() != target.shape())
    return fmt::format("{} must have shape {} but has {}", name, target.shape(), tensor.shape());
  if ((tensor.dtype() == DType::i32) != (target.dtype() == DType::i32))
    return fmt::format("{} must be {} but is {}", name, braid::name(target.dtype()), braid::name(tensor.dtype()));
  return {};
}

std::string detail::listed(std::vector<std::string> problems) {
  constexpr std::size_t kMost = 30;
  if (problems.size() > kMost) {
    const std::size_t more = problems.size() - kMost;
    problems.resize(kMost);
    problems.push_back(fmt::format("and {} more", more));
  }
  return fmt::format("{}", fmt::join(problems, ", "));
}

void assign_by_name(const std::string& source, const std::vector<std::pair<std::string, Tensor*>>& targets,
                    const NamedTensors& tensors) {
  std::vector<std::string> problems;
  std::set<std::string> wanted;
  for (const auto& [name, target] : targets) {
    wanted.insert(name);
    if (const auto found = tensors.find(name); found == tensors.end())
      problems.push_back(name + " is missing");
    else if (const std::string problem = misfit(name, *target, found->second); !problem.empty())
      problems.push_back(problem);
  }
  for (const auto& [name, tensor] : tensors)
    if (!wanted.contains(name)) problems.push_back(excerpt(name) + " is unexpected");
  check<Error>(problems.empty(), "{}: {}", source, detail::listed(problems));
  std::vector<Tensor> converted;
  for (const auto& [name, target] : targets) converted.push_back(tensors.at(name).to(target->dtype()));
  for (std::size_t i = 0; i < targets.size(); ++i) *targets[i].second = std::move(converted[i]);
}

}  // namespace braid::nn
