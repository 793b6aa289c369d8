#pragma once
#include <braid/autograd/ops/rotary_embedding.h>

namespace braid::nn {

/// How rotary frequencies are stretched for contexts longer than the one that a model was first trained with.
struct RotaryScaling {
  /// The published ways.
  enum class Kind {
    none,    ///< frequencies stay
    llama3,  ///< slow turns are slower by `factor`, with a ramp between `slow` and `fast` turns over `first_context`
    yarn,    ///< the same with a ramp over the pairs and larger scores, arXiv:2309.00071
  };

  Kind kind = Kind::none;
  double factor = 1;         ///< the context / the first context, at least 1
  double first_context = 1;  ///< that of the first training, in positions
  double slow = 1;           ///< turns over the first context below which frequencies are divided by `factor`
  double fast = 4;           ///< turns above which they stay; 32 for YaRN
  double magnitude = 0;      ///< yarn: factor of queries and keys; 0: 0.1 log(factor) + 1
  bool whole_pairs = true;   ///< yarn: the ramp begins and ends at whole pairs

  bool operator==(const RotaryScaling&) const = default;  ///< all equal
};

/// Throws ValueError unless factor >= 1, first_context > 0 and 0 < slow < fast, where there is a scaling.
const RotaryScaling& checked(const RotaryScaling& scaling);

/// The turns of `pairs` pairs under a scaling. Throws ValueError unless base > 0, and as checked() does.
RotaryTurns scaled_turns(std::int64_t pairs, double base, const RotaryScaling& scaling);

}  // namespace braid::nn
