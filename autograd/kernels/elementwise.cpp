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

constexpr auto kExpm1 = [](auto d, auto x) HWY_ATTR { return expm1(d, x); };

/// dx = dy e^x; not dy (y + 1), which is 0 where y rounds to -1
constexpr auto kExpm1Vjp = [](auto d, auto dy, auto x) HWY_ATTR { return hn::Mul(dy, exp(d, x)); };

constexpr auto kTanh = [](auto d, auto x) HWY_ATTR { return tanh(d, x); };

constexpr auto kSigmoid = [](auto d, auto x) HWY_ATTR { return sigmoid(d, x); };

constexpr auto kSoftplus = [](auto d, auto x) HWY_ATTR { return softplus(d, x); };

/// dx = dy sigmoid(x)
constexpr auto kSoftplusVjp = [](auto d, auto dy, auto x) HWY_ATTR { return hn::Mul(dy, sigmoid(d, x)); };

/// x y with y, the result of gate, which is x far above zero and 0 far below.
template <class D, class V>
HWY_INLINE V gated(D d, V x, Sum<V> y) {
  using T = hn::TFromD<D>;
  const V least = hn::Set(d, -kGateEnd<T>), near = hn::IfThenElse(hn::Lt(x, least), least, x);
  const V product = hn::Mul(hn::MulAdd(near, y.high, hn::Mul(near, y.low)), hn::Set(d, kGateUnit<T>));
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, T{64})), x, product);
}

/// y = x s with s = sigmoid(x)
constexpr auto kSilu = [](auto d, auto x) HWY_ATTR { return gated(d, x, gate(d, Sum<decltype(x)>{x, hn::Zero(d)})); };

/// dx = dy s (1 + x (1 - s))
constexpr auto kSiluVjp = [](auto d, auto dy, auto x) HWY_ATTR {
  const auto one = hn::Set(d, hn::TFromD<decltype(d)>{1}), s = sigmoid(d, x);
  return hn::Mul(hn::Mul(dy, s), hn::MulAdd(x, hn::Sub(one, s), one));
};

/// The argument of gelu's sigmoid and its derivative: (1 + tanh(u)) / 2 = sigmoid(2 u), where
/// 2 u = x (c + c' x^2) = sqrt(8 / pi) (x + 0.044715 x^3), with its rounding errors: the sigmoid makes up to 90 times
/// as much of them. Far out, where the sigmoid is 0 or 1, x is clamped to keep x^3 finite.
template <class D, class V>
struct GeluArgument {
  using T = hn::TFromD<D>;
  static constexpr T kScale = static_cast<T>(1.595703125);  // of so few bits that nothing is lost in slope - kScale
  static constexpr T kScaleLow = static_cast<T>(6.599660573071159772e-5);
  static constexpr double kExactCubic = 0.07135481627260025;
  static constexpr T kCubic = static_cast<T>(kExactCubic);
  static constexpr T kCubicLow = static_cast<T>(kExactCubic - double{kCubic} - 6.175149918155315e-19);
  V x, square;

  HWY_INLINE GeluArgument(D d, V unclamped) : x(clamp(d, unclamped, -40, 40)), square(hn::Mul(x, x)) {}
  HWY_INLINE Sum<V> value(D d) const {
    const auto cubic = hn::Set(d, kCubic), scale = hn::Set(d, kScale);
    const V slope = hn::MulAdd(square, cubic, scale), lost = hn::MulAdd(square, cubic, hn::Sub(scale, slope));
    const V of_square = hn::MulAdd(cubic, hn::MulSub(x, x, square), hn::Set(d, kScaleLow));
    const V slope_low = hn::Add(lost, hn::MulAdd(square, hn::Set(d, kCubicLow), of_square)), v = hn::Mul(x, slope);
    return {v, hn::MulAdd(x, slope_low, hn::MulSub(x, slope, v))};
  }
  HWY_INLINE V derivative(D d) const {
    return hn::MulAdd(square, hn::Set(d, 3 * kCubic), hn::Set(d, kScale + kScaleLow));
  }
  HWY_INLINE V second_derivative(D d) const { return hn::Mul(x, hn::Set(d, 6 * kCubic)); }
};

/// y = x s with s = sigmoid(2 u)
constexpr auto kGelu = [](auto d, auto x) HWY_ATTR { return gated(d, x, gate(d, GeluArgument(d, x).value(d))); };

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

/// The normal distribution at x, as precisely as results of type T need it.
template <class T, class D, class V>
HWY_INLINE Normal<V> normal_for(D d, V x) {
  if constexpr (sizeof(T) == 4)
    return short_normal(d, x);
  else
    return normal(d, x);
}

/// y = x cdf(x); far out, where the cdf is 0 or 1, x is clamped to keep the product and its square finite.
constexpr auto kGeluErf = [](auto d, auto x) HWY_ATTR {
  using T = hn::TFromD<decltype(d)>;
  const auto y = in_double(
      d, [](auto d, auto x) HWY_ATTR { return hn::Mul(x, normal_for<T>(d, x).cdf); }, clamp(d, x, -40, 40));
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, T{40})), x, y);
};

constexpr double kDensity = std::numbers::inv_sqrtpi / std::numbers::sqrt2;

/// dx = dy (cdf(x) + x pdf(x))
constexpr auto kGeluErfVjp = [](auto d, auto dy, auto x) HWY_ATTR {
  using T = hn::TFromD<decltype(d)>;
  const auto slope = [](auto d, auto x) HWY_ATTR {
    const auto of = normal_for<T>(d, x);
    return hn::MulAdd(hn::Mul(x, hn::Set(d, kDensity)), of.gauss, of.cdf);
  };
  return hn::Mul(dy, in_double(d, slope, clamp(d, x, -40, 40)));
};

/// dx = dy (2 - x^2) pdf(x), of the derivative; far out, where it is 0, x is clamped to keep its square finite.
constexpr auto kGeluErfSecondVjp = [](auto d, auto dy, auto unclamped) HWY_ATTR {
  using T = hn::TFromD<decltype(d)>;
  const auto x = clamp(d, unclamped, -40, 40), pdf = hn::Mul(gauss(d, x), hn::Set(d, static_cast<T>(kDensity)));
  return hn::Mul(hn::Mul(dy, hn::NegMulAdd(x, x, hn::Set(d, T{2}))), pdf);
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
