#include <braid/autograd/ops/pad.h>

#include <braid/autograd/ops/slice.h>
#include <braid/core/detail/indexing.h>

namespace braid {

Var pad(const Var& x, int axis, std::int64_t before, std::int64_t after, double value) {
  const std::int64_t size = x.shape()[x.shape().index(axis, "pad")];
  constexpr std::int64_t kMost = std::int64_t{1} << 59;  // elements of a tensor
  check_value(0 <= before && before <= kMost && 0 <= after && after <= kMost,
              "pad: before and after must lie in [0, 2^59] but are {} and {}", before, after);
  Tensor y = scalar(value, x.dtype(), "pad").broadcast_to(x.shape().with(axis, before + size + after)).clone();
  detail::write_slice(y, axis, before, x.value());
  return record("pad", std::move(y), {x},
                [axis, before, size](const Var& dy) { return slice(dy, axis, before, before + size); });
}

}  // namespace braid
