#include <braid/core/kernels/convert.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braid/core/kernels/convert.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/vector-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

template <class From, class To>
void convert(const From* x, To* y, std::int64_t n) {
  const hn::ScalableTag<float> d;
  for_each_vector(d, n, [&](std::int64_t i, auto part) HWY_ATTR { part.store(part.load(d, x + i), d, y + i); });
}

bool split(const float* x, std::int64_t n, int parts, bfloat16* y, std::int64_t step) {
  const hn::ScalableTag<float> d;
  auto check = hn::Zero(d);  // NaN once something is not finite
  for_each_vector(d, n, [&](std::int64_t i, auto part) HWY_ATTR {
    auto rest = part.load(d, x + i);
    for (int p = 0; p < parts; ++p) {
      const auto nearest = round_to_halves(d, rest);
      part.store(nearest, Halves<decltype(d)>(), reinterpret_cast<std::uint16_t*>(y + p * step + i));
      rest = hn::Sub(rest, widen(d, nearest));  // exact; infinity leaves NaN
      check = hn::Add(check, hn::Sub(rest, rest));
    }
  });
  return sum_lanes(d, check) == 0;
}

ConvertKernels kernels() {
  return {.widen = convert<bfloat16, float>, .round = convert<float, bfloat16>, .split = split};
}

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::kernels {

HWY_EXPORT(kernels);

ConvertKernels convert_kernels() { return HWY_DYNAMIC_DISPATCH(kernels)(); }

}  // namespace braid::kernels
#endif
