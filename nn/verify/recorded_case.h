#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <braid/nn/saving.h>

namespace braid::nn {

/// The settings of a recorded case: JSON values by name. All throw FileError when there is none or it has another type.
class CaseSettings {
 public:
  CaseSettings() = default;
  explicit CaseSettings(std::map<std::string, std::string> json) : json_(std::move(json)) {}  ///< JSON texts

  bool has(const std::string& key) const { return json_.contains(key); }  ///< whether there is such a setting
  /// An integer from `least` to `most`.
  std::int64_t integer(const std::string& key, std::int64_t least = INT64_MIN, std::int64_t most = INT64_MAX) const;
  double number(const std::string& key) const;                                ///< a number
  std::string text(const std::string& key) const;                             ///< a string
  std::vector<double> numbers(const std::string& key) const;                  ///< a list of numbers
  std::vector<std::string> texts(const std::string& key) const;               ///< a list of strings
  std::vector<std::vector<std::string>> lists(const std::string& key) const;  ///< a list of lists of strings

 private:
  std::map<std::string, std::string> json_;
};

/// An intermediate result of a submodule, `part.NAME`, and the gradient that reached it, `part_grad.NAME`.
struct RecordedPart {
  std::string name;                  ///< NAME
  std::vector<std::string> sources;  ///< the parts that it was computed from directly
};

/// One call of a module as other code computed it: inputs `in.NAME`, parameters `param.NAME`, outputs `out.NAME`, the
/// cotangents of outputs, and the gradients `grad.NAME` of inputs and parameters. record_case.py records one ("Port a
/// module from PyTorch" in the manual).
struct RecordedCase {
  std::string name;  ///< the setting `case`, or else the file's stem
  CaseSettings settings;
  NamedTensors tensors;
  std::vector<RecordedPart> parts{};  ///< in the order of execution
  std::set<std::string> buffers{};    ///< the `param.NAME` without gradients, which a port need not have

  /// The tensor with this name, of any shape. Throws FileError when there is none.
  const Tensor& tensor(const std::string& key) const&;
  Tensor tensor(const std::string& key) && { return std::as_const(*this).tensor(key); }
  /// The tensors whose names start with `prefix`, by the rest of their names: `group("param.")`.
  NamedTensors group(const std::string& prefix) const;
};

/// Reads a case from a safetensors file. Throws as load_safetensors() does, FileError for damaged metadata too.
RecordedCase load_case(const std::filesystem::path& path);

/// The same case with all floating-point tensors in `dtype`.
RecordedCase to_dtype(RecordedCase recorded, DType dtype);

/// The larger of two errors, NaN if one is.
double worse(double a, double b);

/// `max|a - b| / max(1, max|b|)` for a and the reference b, row-major, of any shapes; NaN when a difference is. Throws
/// ShapeError unless they have as many elements.
double relative_error(const Tensor& a, const Tensor& b);

/// The inputs and parameters of a recorded case, `in.NAME` and `param.NAME` as NAME, on a tape unless they are integers
/// or buffers.
class CaseInputs {
 public:
  /// Throws FileError when a name is both an input's and a parameter's.
  CaseInputs(const RecordedCase& recorded, Tape& tape);

  /// The same with others in the place of some. Throws FileError for a name that the case does not have.
  CaseInputs with(std::map<std::string, Var> others) const;

  /// The input or parameter with this name, of any shape. Throws FileError when the case has none.
  const Var& operator[](const std::string& name) const;
  const std::map<std::string, Var>& all() const& { return variables_; }  ///< all of them by name
  std::map<std::string, Var> all() && { return std::move(variables_); }  ///< of a temporary
  /// The dtype of the floating-point tensors.
  DType dtype() const;

  const CaseSettings& settings;

 private:
  std::string inputs_;  // their names
  std::map<std::string, Var> variables_;
};

/// Replaces the parameters of a module by those of a case. Throws FileError when one is missing, ShapeError when one
/// has another shape.
void set_params(auto& module, const CaseInputs& inputs, const NameOf& name_of = std::identity()) {
  for_each_param(module, [&](const std::string& path, Var& param) {
    const Var& input = inputs[name_of(path)];
    check_shape(input.shape() == param.shape(), "{}: expected shape {} but the case has {}", path, param.shape(),
                input.shape());
    param = input;
  });
}

}  // namespace braid::nn
