#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <braid/autograd/verify/gradcheck.h>

namespace braid {

/// How the inputs of an op lie in memory. All but `broadcast` and `zero_size` hold the same values.
enum class Layout {
  contiguous,
  transposed,  ///< axes in reverse order
  sliced,      ///< every second element of the middle of a larger tensor that is NaN elsewhere
  broadcast,   ///< stride 0 along one axis
  zero_size,
};
inline constexpr std::array kLayouts{Layout::contiguous, Layout::transposed, Layout::sliced, Layout::broadcast,
                                     Layout::zero_size};
std::string_view name(Layout layout);

enum class Domain {
  away_from_zero,  ///< signed, sizes in [0.25, 1.25): kinks at 0 are far
  nonzero,         ///< the same, and 0 is a pole
  positive,
};

/// One call of an op at a point where it is smooth.
struct OpCase {
  std::string op;                   // a function of autograd/ops
  std::vector<Shape> shapes;        // of its inputs
  std::vector<Shape> empty_shapes;  // the same with an axis of size 0
  GradcheckFunction f;
  Domain domain = Domain::away_from_zero;
  int broadcast_axis = 0;  // along which equal inputs make no ties
};

/// Every op of the library in at least one case; a test compares it with the headers.
std::vector<OpCase> op_registry();

/// The inputs of a case in f64, the same in every call.
std::vector<Tensor> make_inputs(const OpCase& op_case, Layout layout);

/// Inputs anywhere in the domain of the op: near and on its kinks, with ties (from a grid of few values, every second
/// point), of any size.
std::vector<Tensor> make_random_inputs(const OpCase& op_case, std::uint64_t point);

}  // namespace braid
