#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <braid/core/tensor.h>

namespace braid::nn::detail {

/// The models whose folders braid reads and writes.
enum class Family { gpt2, llama, qwen3 };

using NamedParams = std::vector<std::pair<std::string, Tensor*>>;

/// A tensor of a family's files and the parameters that it is: several stand one after the other along their first
/// axis.
struct PretrainedTensor {
  std::string name;
  std::vector<Tensor*> params;
  bool transposed;  // GPT-2's Conv1D has [in, out]

  Shape shape() const;
  DType dtype() const { return params.front()->dtype(); }
  /// Sets the parameters, in `dtype`.
  void assign(Tensor value, DType dtype) const;
  /// A view where it can be.
  Tensor value() const;
};

/// All tensors of a model with these parameters. Throws Error unless the family has a name for each.
std::vector<PretrainedTensor> pretrained_tensors(Family family, int layers, const NamedParams& params);

/// What the names of all but the head begin with; files of a model without one leave it out: `transformer.` or
/// `model.`.
std::string_view base_prefix(Family family);
/// Whether the tensor follows from the settings, as a causal mask, so that it is not read.
bool is_constant(Family family, std::string_view name);

}  // namespace braid::nn::detail
