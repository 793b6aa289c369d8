#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <braid/nn/pretrained/config.h>

namespace braid::nn::detail {

using Family = PretrainedFamily;
using NamedParams = std::vector<std::pair<std::string, Tensor*>>;

/// A tensor of a family's files and the parameters that it contains: several are concatenated along their first axis.
struct PretrainedTensor {
  std::string name;
  std::vector<Tensor*> params;
  bool transposed;  // GPT-2's Conv1D stores [in, out]

  Shape shape() const;
  DType dtype() const { return params.front()->dtype(); }
  /// Sets the parameters, in `dtype` but for integers.
  void assign(Tensor value, DType dtype) const;
  /// What the file contains: a view of the parameter unless several are concatenated.
  Tensor value() const;
};

/// Whether a parameter is of a connection, by its name.
inline bool in_connection(const NamedParams::value_type& param) {
  return param.first.find(".connection.") != param.first.npos;
}

/// All tensors of a model with these parameters. Throws Error unless the family has a name for each.
std::vector<PretrainedTensor> pretrained_tensors(Family family, const TransformerConfig& config,
                                                 const NamedParams& params);

/// The prefix of all names but the head's, `transformer.` or `model.`. Files of a model without a head omit it.
std::string_view base_prefix(Family family);
/// Whether the tensor is determined by the settings, as a causal mask is, and need not be read.
bool is_constant(Family family, std::string_view name);

}  // namespace braid::nn::detail
