#pragma once
#include <functional>
#include <string>
#include <vector>

#include <braid/core/tensor.h>

namespace braid::bench {

using Tensors = std::vector<Tensor>;

/// n streams of C channels for a number of tokens.
struct MHCSizes {
  std::int64_t tokens, streams, channels;
};

/// How an operation runs: by fused kernels, or composed of other ops.
enum class Form { fused, composed };

/// The bytes that every implementation has to move when nothing is in cache: each tensor that is read or written, once.
struct MHCTraffic {
  double forward, vjp;
};

struct MHCOperation {
  std::string name;           // mhc/B64/n4/C512
  std::vector<Shape> inputs;  // of each call
  Shape output;
  MHCTraffic bytes;
  std::function<Tensor(const Tensors& inputs)> forward = {};
  /// The value, then the gradients of the inputs and of the parameters.
  std::function<Tensors(const Tensors& inputs, const Tensor& dy)> forward_backward = {};
};

/// `sinkhorn_knopp` of `tokens` matrices [n, n], 20 iterations.
MHCOperation sinkhorn_operation(std::int64_t tokens, std::int64_t n);

/// `stream_read` and `stream_write` with one map per token; the whole sublayer with an identity as its layer, that is
/// maps, read and write, of `mhc` and `hyper_connection`; and `mhc_layer`, whose layer is its RMS norm.
std::vector<MHCOperation> stream_operations(const MHCSizes& sizes);

}  // namespace braid::bench
