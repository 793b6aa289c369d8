#include <braid/autograd/kernels/elementwise.h>

#include <numbers>

#define HWY_TARGET_INCLUDE "braid/autograd/kernels/elementwise.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/core/kernels/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

constexpr auto kExp = [](auto d, auto x) HWY_ATTR { return exp(d, x); };

constexpr auto kLog = [](auto d, auto x) HWY_ATTR { return log(d, x); };

constexpr auto kLog1p = [](auto d, auto x) HWY_ATTR { return log1p(d, x); };

constexpr auto kExpm1 = [](auto d, auto x) HWY_ATTR {
  return hn::CopySign(expm1(d, x), x);  // -0 of -0
};

/// dx = dy e^x; not dy (y + 1), which is 0 where y rounds to -1
constexpr auto kExpm1Vjp = [](auto d, auto dy, auto x) HWY_ATTR { return hn::Mul(dy, exp(d, x)); };

constexpr auto kTanh = [](auto d, auto x) HWY_ATTR { return tanh(d, x); };

constexpr auto kSigmoid = [](auto d, auto x) HWY_ATTR { return sigmoid(d, x); };

/// y = max(x, 0) + log1p(e^-|x|)
constexpr auto kSoftplus = [](auto d, auto x) HWY_ATTR {
  return hn::Add(hn::Max(x, hn::Zero(d)), hn::Log1p(d, exp(d, hn::Neg(hn::Abs(x)))));
};

/// dx = dy sigmoid(x)
constexpr auto kSoftplusVjp = [](auto d, auto dy, auto x) HWY_ATTR { return hn::Mul(dy, sigmoid(d, x)); };

/// y = x s with s = sigmoid(x)
constexpr auto kSilu = [](auto d, auto x) HWY_ATTR { return hn::Mul(x, sigmoid(d, x)); };

/// dx = dy s (1 + x (1 - s))
constexpr auto kSiluVjp = [](auto d, auto dy, auto x) HWY_ATTR {
  const auto one = hn::Set(d, hn::TFromD<decltype(d)>{1}), s = sigmoid(d, x);
  return hn::Mul(hn::Mul(dy, s), hn::MulAdd(x, hn::Sub(one, s), one));
};

/// The argument of gelu's sigmoid and its derivative: (1 + tanh(u)) / 2 = sigmoid(2 u), where
/// u = sqrt(2 / pi) (x + 0.044715 x^3). Far out, where the sigmoid is 0 or 1, x is clamped to keep x^3 finite.
template <class D, class V>
struct GeluArgument {
  using T = hn::TFromD<D>;
  static constexpr T kTwoSqrt2OverPi = static_cast<T>(2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
  static constexpr T kCubic = static_cast<T>(0.044715);
  V x, square;

  HWY_INLINE GeluArgument(D d, V unclamped) : x(clamp(d, unclamped, -40, 40)), square(hn::Mul(x, x)) {}
  HWY_INLINE V value(D d) const {
    const V slope = hn::MulAdd(square, hn::Set(d, kTwoSqrt2OverPi * kCubic), hn::Set(d, kTwoSqrt2OverPi));
    return hn::Mul(x, slope);
  }
  HWY_INLINE V derivative(D d) const {
    return hn::MulAdd(square, hn::Set(d, 3 * kTwoSqrt2OverPi * kCubic), hn::Set(d, kTwoSqrt2OverPi));
  }
  HWY_INLINE V second_derivative(D d) const { return hn::Mul(x, hn::Set(d, 6 * kTwoSqrt2OverPi * kCubic)); }
};

/// y = x s with s = sigmoid(2 u)
constexpr auto kGelu = [](auto d, auto x) HWY_ATTR { return hn::Mul(x, sigmoid(d, GeluArgument(d, x).value(d))); };

/// dx = dy s (1 + x (1 - s) 2 u')
constexpr auto kGeluVjp = [](auto d, auto dy, auto x) HWY_ATTR {
  const GeluArgument u(d, x);
  const auto one = hn::Set(d, hn::TFromD<decltype(d)>{1}), s = sigmoid(d, u.value(d));
  return hn::Mul(hn::Mul(dy, s), hn::MulAdd(hn::Mul(u.x, u.derivative(d)), hn::Sub(one, s), one));
};

/// dx = dy s (1 - s) (2 (2 u') + x ((1 - 2 s) (2 u')^2 + 2 u'')), of the derivative
constexpr auto kGeluSecondVjp = [](auto d, auto dy, auto x) HWY_ATTR {
  const GeluArgument u(d, x);
  const auto one = hn::Set(d, hn::TFromD<decltype(d)>{1}), s = sigmoid(d, u.value(d)), rest = hn::Sub(one, s);
  const auto slope = u.derivative(d);
  const auto bend = hn::MulAdd(hn::Mul(hn::Sub(rest, s), slope), slope, u.second_derivative(d));
  return hn::Mul(hn::Mul(dy, hn::Mul(s, rest)), hn::MulAdd(u.x, bend, hn::Add(slope, slope)));
};

/// The standard normal distribution function, through erfc: exact far below zero as well.
template <class D, class V>
HWY_INLINE V normal_cdf(D d, V x) {
  using T = hn::TFromD<D>;
  return hn::Mul(hn::Set(d, T{0.5}), erfc(d, hn::Mul(x, hn::Set(d, -1 / std::numbers::sqrt2_v<T>))));
}

/// y = x cdf(x)
constexpr auto kGeluErf = [](auto d, auto x) HWY_ATTR { return hn::Mul(x, normal_cdf(d, x)); };

template <class D, class V>
HWY_INLINE V normal_pdf(D d, V x) {
  using T = hn::TFromD<D>;
  const auto gauss = exp(d, hn::Mul(hn::Mul(x, x), hn::Set(d, T{-0.5})));
  return hn::Mul(gauss, hn::Set(d, std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>));
}

/// dx = dy (cdf(x) + x pdf(x))
constexpr auto kGeluErfVjp = [](auto d, auto dy, auto x)
                                 HWY_ATTR { return hn::Mul(dy, hn::MulAdd(x, normal_pdf(d, x), normal_cdf(d, x))); };

/// dx = dy (2 - x^2) pdf(x), of the derivative; far out, where it is 0, x is clamped to keep its square finite.
constexpr auto kGeluErfSecondVjp = [](auto d, auto dy, auto unclamped) HWY_ATTR {
  const auto x = clamp(d, unclamped, -40, 40);
  const auto two = hn::Set(d, hn::TFromD<decltype(d)>{2});
  return hn::Mul(hn::Mul(dy, hn::NegMulAdd(x, x, two)), normal_pdf(d, x));
};

template <auto kF, class T>
void forward(const T* x, T* y, std::int64_t n) {
  transform(kF, n, y, x);
}

template <auto kF, class T>
void vjp(const T* dy, const T* x, T* dx, std::int64_t n) {
  transform(kF, n, dx, dy, x);
}

template <class T>
constexpr ElementwiseKernels<T> kTable = {.exp = forward<kExp, T>,
                                          .log = forward<kLog, T>,
                                          .log1p = forward<kLog1p, T>,
                                          .tanh = forward<kTanh, T>,
                                          .sigmoid = forward<kSigmoid, T>,
                                          .expm1 = forward<kExpm1, T>,
                                          .expm1_vjp = vjp<kExpm1Vjp, T>,
                                          .softplus = forward<kSoftplus, T>,
                                          .softplus_vjp = vjp<kSoftplusVjp, T>,
                                          .silu = forward<kSilu, T>,
                                          .silu_vjp = vjp<kSiluVjp, T>,
                                          .gelu = forward<kGelu, T>,
                                          .gelu_vjp = vjp<kGeluVjp, T>,
                                          .gelu_second_vjp = vjp<kGeluSecondVjp, T>,
                                          .gelu_erf = forward<kGeluErf, T>,
                                          .gelu_erf_vjp = vjp<kGeluErfVjp, T>,
                                          .gelu_erf_second_vjp = vjp<kGeluErfSecondVjp, T>};

Tables<ElementwiseKernels> tables() { return {kTable<float>, kTable<double>, kTable<bfloat16>}; }

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::kernels, Tables<ElementwiseKernels> elementwise_kernels())
