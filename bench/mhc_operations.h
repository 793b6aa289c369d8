#pragma once
#include <functional>
#include <string>
#include <vector>

#include <braid/core/tensor.h>
#include <braid/mhc/path.h>

namespace braid::bench {

using Tensors = std::vector<Tensor>;

/// n streams of C channels for a number of tokens.
struct MhcSizes {
  std::int64_t tokens, streams, channels;
};

/// One path of an operation, with its parameters.
struct MhcForm {
  std::function<Tensor(const Tensors& inputs)> forward;
  /// The value, then the gradients of the inputs and of the parameters.
  std::function<Tensors(const Tensors& inputs, const Tensor& dy)> forward_backward;
};

/// The bytes that no implementation can avoid moving when nothing is in cache: what is read and written, once each.
struct MhcTraffic {
  double forward, vjp;
};

struct MhcOperation {
  std::string name;           // mhc/B64/n4/C512
  std::vector<Shape> inputs;  // what each call brings along
  Shape output;
  MhcTraffic bytes;
  std::function<MhcForm(mhc::Path)> form;
};

/// `sinkhorn_knopp` of `tokens` matrices [n, n], 20 iterations.
MhcOperation sinkhorn_operation(std::int64_t tokens, std::int64_t n);

/// `stream_read` and `stream_write` with one map a token; the whole sublayer with an identity as its layer, that is
/// maps, read and write, of `mhc` and `hyper_connection`; and `mhc_layer`, whose layer is its RMS norm.
std::vector<MhcOperation> stream_operations(const MhcSizes& sizes);

}  // namespace braid::bench
