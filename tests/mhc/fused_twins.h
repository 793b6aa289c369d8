#pragma once
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include <braid/autograd/gradcheck.h>
#include <braid/core/random.h>

namespace braid::mhc {

/// The sizes of one call.
struct TwinSizes {
  Shape lead;  // [...] in front of [n, C]
  std::int64_t n, channels;
};

/// A fused op and what it must equal, on inputs of f64.
struct Twin {
  std::vector<Tensor> inputs;
  GradcheckFunction fused, composed;
  std::vector<std::size_t> streams = {0};  ///< which inputs are streams or states; the others are maps and parameters
};

/// A fused op by name, at any sizes; smooth, and of order one.
struct TwinFamily {
  std::string name;
  std::function<Twin(const TwinSizes&, Rng&)> make;
  bool without_channels = true;        ///< C = 0 is allowed
  std::int64_t largest_parameter = 0;  ///< of n^2 (n + 2) C, which is phi's size; 0: no limit
  std::function<bool(std::int64_t)> takes = [](std::int64_t) { return true; };  ///< whether it exists for n streams
  double f32 = 1e-5;  ///< the largest error in f32; more for two connections, whose layers square what they read
  bool at_large_sizes = true;  ///< worth running where stores bypass the caches
};

inline void PrintTo(const TwinFamily& family, std::ostream* out) { *out << family.name; }

/// One for every fused op and module.
std::vector<TwinFamily> twin_families();

}  // namespace braid::mhc
