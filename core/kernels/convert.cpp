#include <braid/core/kernels/convert.h>

#define HWY_TARGET_INCLUDE "braid/core/kernels/convert.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/core/kernels/vector-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

template <class From, class To>
void convert(const From* x, To* y, std::int64_t n) {
  const hn::ScalableTag<float> d;
  for_each_vector(d, n, [&](std::int64_t i, auto part) HWY_ATTR { part.store(part.load(d, x + i), d, y + i); });
}

bool round_finite(const float* x, bfloat16* y, std::int64_t n) {
  const hn::ScalableTag<float> d;
  auto check = hn::Zero(d);  // NaN once something is not finite
  for_each_vector(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    const auto nearest = round_to_halves(d, part.load(d, x + i));
    part.store(nearest, Halves<decltype(d)>(), reinterpret_cast<std::uint16_t*>(y + i));
    const auto rounded = widen(d, nearest);
    check = hn::Add(check, hn::Sub(rounded, rounded));
  });
  return sum_lanes<1>(d, &check) == 0;
}

ConvertKernels tables() {
  return {.widen = convert<bfloat16, float>, .round = convert<float, bfloat16>, .round_finite = round_finite};
}

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::kernels, ConvertKernels convert_kernels())
