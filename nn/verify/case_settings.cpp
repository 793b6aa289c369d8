#include <algorithm>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

#include <braid/core/files/budget.h>
#include <braid/nn/verify/recorded_case.h>

namespace braid::nn {

/// Whether a value has the type T, strictly: the JSON library converts 1e308 and true to integers as well.
template <class T>
static bool is_a(const nlohmann::json& value) {
  if constexpr (std::is_same_v<T, std::int64_t>)
    return value.is_number_integer() && (!value.is_number_unsigned() || std::in_range<T>(value.get<std::uint64_t>()));
  else if constexpr (std::is_same_v<T, double>)
    return value.is_number();
  else if constexpr (std::is_same_v<T, std::string>)
    return value.is_string();
  else
    return value.is_array() && std::ranges::all_of(value, is_a<typename T::value_type>);
}

template <class T>
static T setting(const std::map<std::string, std::string>& json, const std::string& key, const std::string& type) {
  const auto found = json.find(key);
  check<FileError>(found != json.end(), "the metadata must have '{}'", key);
  check_nesting(fmt::format("the metadata's '{}'", key), found->second);
  const auto value = nlohmann::json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  check<FileError>(is_a<T>(value), "the metadata's '{}' must be {} but is {:.80}", key, type, found->second);
  return value.get<T>();
}

std::int64_t CaseSettings::integer(const std::string& key, std::int64_t least, std::int64_t most) const {
  const auto value = setting<std::int64_t>(json_, key, "an integer");
  check<FileError>(value >= least && value <= most, "the metadata's '{}' must be an integer from {} to {} but is {}",
                   key, least, most, value);
  return value;
}
double CaseSettings::number(const std::string& key) const { return setting<double>(json_, key, "a number"); }
std::string CaseSettings::text(const std::string& key) const { return setting<std::string>(json_, key, "a string"); }
std::vector<double> CaseSettings::numbers(const std::string& key) const {
  return setting<std::vector<double>>(json_, key, "a list of numbers");
}
std::vector<std::string> CaseSettings::texts(const std::string& key) const {
  return setting<std::vector<std::string>>(json_, key, "a list of strings");
}
std::vector<std::vector<std::string>> CaseSettings::lists(const std::string& key) const {
  return setting<std::vector<std::vector<std::string>>>(json_, key, "a list of lists of strings");
}

}  // namespace braid::nn
