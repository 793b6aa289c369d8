#pragma once
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <braid/autograd/composed.h>
#include <braid/autograd/verify/gradcheck.h>
#include <braid/core/random.h>

namespace braid::mhc {

/// The sizes of one call.
struct CallSizes {
  Shape lead;  // [...] in front of [n, C]
  std::int64_t n, channels;
};

/// A call of a fused op on inputs of f64.
struct FusedCall {
  std::vector<Tensor> inputs;
  GradcheckFunction fused;
  std::vector<std::size_t> streams = {0};  ///< the inputs that are streams or states; the others are maps or parameters

  /// The op in its composed form.
  GradcheckFunction composed() const {
    return [fused = fused](std::span<const Var> v) {
      const Composed scope(Composed::Ops::connections);
      return fused(v);
    };
  }
};

/// A fused op by name, at any sizes; smooth, and of order one.
struct FusedOp {
  std::string name;
  std::function<FusedCall(const CallSizes&, Rng&)> make;
  bool without_channels = true;        ///< C = 0 is allowed
  std::int64_t largest_parameter = 0;  ///< of n^2 (n + 2) C, which is phi's size; 0: no limit
  std::function<bool(std::int64_t)> takes = [](std::int64_t) { return true; };  ///< whether it exists for n streams
  bool at_large_sizes = true;  ///< worth running where stores bypass the caches
};

inline void PrintTo(const FusedOp& family, std::ostream* out) { *out << family.name; }

/// Every fused op and module.
std::vector<FusedOp> fused_ops();

}  // namespace braid::mhc
