#include <tests/golden/golden_case.h>

#include <cmath>

#include <nlohmann/json.hpp>

#include <braid/core/safetensors.h>

namespace braid::golden {

template <class T>
T Config::get(const std::string& key, const char* type) const {
  const auto found = json_.find(key);
  check<FileError>(found != json_.end(), "the metadata must have '{}'", key);
  try {
    return nlohmann::json::parse(found->second).get<T>();
  } catch (const nlohmann::json::exception&) {
    throw FileError(fmt::format("the metadata's '{}' must be {} but is {}", key, type, found->second));
  }
}

std::int64_t Config::integer(const std::string& key) const { return get<std::int64_t>(key, "an integer"); }
double Config::number(const std::string& key) const { return get<double>(key, "a number"); }
std::string Config::text(const std::string& key) const { return get<std::string>(key, "a string"); }
std::vector<double> Config::numbers(const std::string& key) const {
  return get<std::vector<double>>(key, "a list of numbers");
}

const Tensor& Case::tensor(const std::string& key) const {
  const auto found = tensors.find(key);
  check<FileError>(found != tensors.end(), "the file must have '{}'", key);
  return found->second;
}

Case load_case(const std::filesystem::path& path) {
  SafetensorsFile file = load_safetensors(path);
  const bool named = file.metadata.contains("case");
  Config config(std::move(file.metadata));
  return {named ? config.text("case") : path.stem().string(), std::move(config), std::move(file.tensors)};
}

Case converted(Case golden, DType dtype) {
  for (auto& [key, tensor] : golden.tensors)
    if (tensor.dtype() != DType::i32) tensor = tensor.to(dtype);
  return golden;
}

std::string after(const std::string& prefix, const std::string& key) {
  return key.starts_with(prefix) ? key.substr(prefix.size()) : "";
}

double worse(double a, double b) { return std::isnan(a) || a > b ? a : b; }

double largest(const Tensor& x) {
  double most = 0;
  for (const double v : x.to_vector<double>()) most = worse(most, std::abs(v));
  return most;
}

}  // namespace braid::golden
