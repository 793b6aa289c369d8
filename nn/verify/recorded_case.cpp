#include <braid/nn/verify/recorded_case.h>

#include <algorithm>
#include <cmath>
#include <ranges>

#include <fmt/ranges.h>

namespace braid::nn {

const Tensor& RecordedCase::tensor(const std::string& key) const& {
  const auto found = tensors.find(key);
  check<FileError>(found != tensors.end(), "the file must have '{}'", key);
  return found->second;
}

NamedTensors RecordedCase::group(const std::string& prefix) const {
  NamedTensors found;
  for (const auto& [key, tensor] : tensors)
    if (key.starts_with(prefix)) found.emplace(key.substr(prefix.size()), tensor);
  return found;
}

/// Each entry of the setting `parts` has a part's name and the names of its sources, which come before it.
static std::vector<RecordedPart> recorded_parts(const RecordedCase& recorded) {
  std::vector<RecordedPart> parts;
  std::set<std::string> known;
  for (const std::vector<std::string>& names : recorded.settings.lists("parts")) {
    check<FileError>(!names.empty(), "the metadata's 'parts' must name each part");
    recorded.tensor("part." + names[0]);
    parts.push_back({names[0], {names.begin() + 1, names.end()}});
    for (const std::string& source : parts.back().sources)
      check<FileError>(known.contains(source), "part '{}' must come after its source '{}'", names[0], source);
    known.insert(names[0]);
  }
  return parts;
}

RecordedCase load_case(const std::filesystem::path& path) {
  SafetensorsFile file = load_safetensors(path);
  RecordedCase recorded{path.stem().string(), CaseSettings(std::move(file.metadata)), std::move(file.tensors)};
  try {
    if (recorded.settings.has("case")) recorded.name = recorded.settings.text("case");
    if (recorded.settings.has("parts")) recorded.parts = recorded_parts(recorded);
    if (recorded.settings.has("buffers"))
      for (const std::string& name : recorded.settings.texts("buffers")) recorded.buffers.insert(name);
  } catch (const FileError& error) {
    throw FileError(fmt::format("load_case: {}: {}", path.string(), error.what()));
  }
  return recorded;
}

RecordedCase to_dtype(RecordedCase recorded, DType dtype) {
  for (auto& [key, tensor] : recorded.tensors)
    if (tensor.dtype() != DType::i32) tensor = tensor.to(dtype);
  return recorded;
}

double worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }

double relative_error(const Tensor& a, const Tensor& b) {
  check_shape(a.numel() == b.numel(), "relative_error: {} and {} must have as many elements", a.shape(), b.shape());
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double difference = 0, largest = 1;
  for (std::size_t i = 0; i < x.size(); ++i) {
    difference = worse(difference, std::abs(x[i] - y[i]));
    largest = std::max(largest, std::abs(y[i]));
  }
  return difference / largest;
}

CaseInputs::CaseInputs(const RecordedCase& recorded, Tape& tape)
    : settings(recorded.settings),
      inputs_(fmt::format("{}", fmt::join(recorded.group("in.") | std::views::keys, ", "))) {
  for (const char* prefix : {"in.", "param."})
    for (const auto& [name, tensor] : recorded.group(prefix)) {
      const bool constant = tensor.dtype() == DType::i32 || recorded.buffers.contains(name);
      const bool added = variables_.emplace(name, constant ? Var(tensor) : tape.watch(tensor)).second;
      check<FileError>(added, "'{}' must be an input or a parameter but is both", name);
    }
}

CaseInputs CaseInputs::with(std::map<std::string, Var> others) const {
  CaseInputs inputs = *this;
  for (auto& [name, v] : others) const_cast<Var&>(inputs[name]) = std::move(v);
  return inputs;
}

const Var& CaseInputs::operator[](const std::string& name) const {
  const auto found = variables_.find(name);
  check<FileError>(found != variables_.end(), "the case has no input or parameter '{}': its inputs are {}", name,
                   inputs_);
  return found->second;
}

DType CaseInputs::dtype() const {
  for (const auto& [name, variable] : variables_)
    if (variable.dtype() != DType::i32) return variable.dtype();
  return DType::f64;
}

}  // namespace braid::nn
