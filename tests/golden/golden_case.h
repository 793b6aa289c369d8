#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <braid/core/tensor.h>

namespace braid::golden {

using Tensors = std::map<std::string, Tensor>;

/// The settings of a case: a JSON value by name. All throw FileError when there is none or it has another type.
class Config {
 public:
  Config() = default;
  explicit Config(std::map<std::string, std::string> json) : json_(std::move(json)) {}

  bool has(const std::string& key) const { return json_.contains(key); }
  std::int64_t integer(const std::string& key) const;
  double number(const std::string& key) const;
  std::string text(const std::string& key) const;
  std::vector<double> numbers(const std::string& key) const;

 private:
  template <class T>
  T get(const std::string& key, const char* type) const;

  std::map<std::string, std::string> json_;
};

/// What a case file holds; README.md tells the names.
struct Case {
  std::string name;
  Config config;
  Tensors tensors;

  /// Throws FileError when there is none.
  const Tensor& tensor(const std::string& key) const;
};

/// The name is the setting `case`, or else the file's stem. Throws FileError.
Case load_case(const std::filesystem::path& path);

/// The same with all floating-point tensors in `dtype`.
Case converted(Case golden, DType dtype);

/// `rest` when key is `prefix` + rest, or else empty: `after("grad.", "grad.x")` is "x".
std::string after(const std::string& prefix, const std::string& key);

/// The larger one, NaN if one is.
double worse(double a, double b);

/// The largest |x|, NaN if there is one, 0 for no elements.
double largest(const Tensor& x);

}  // namespace braid::golden
