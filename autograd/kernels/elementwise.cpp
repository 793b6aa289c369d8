#include <braid/autograd/kernels/elementwise.h>

#include <cmath>
#include <numbers>
#include <type_traits>

#define HWY_TARGET_INCLUDE "braid/autograd/kernels/elementwise.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/core/kernels/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

constexpr auto kExp = [](auto d, auto x) HWY_ATTR { return exp(d, x); };

/// dx = dy slope(x)
template <auto kSlope>
constexpr auto kTimesSlope = [](auto d, auto dy, auto x) HWY_ATTR { return hn::Mul(dy, kSlope(d, x)); };

/// Whether to compute for results of bf16, which keep so few digits that a sigmoid without corrections serves them.
template <class S>
constexpr bool kRough = std::is_same_v<S, bfloat16>;

template <bool rough>
constexpr auto kSigmoid = [](auto d, auto x) HWY_ATTR {
  if constexpr (!rough) return sigmoid(d, x);
  const auto one = hn::Set(d, hn::TFromD<decltype(d)>{1});
  return hn::Div(one, hn::Add(one, exp_to_one(d, clamp(d, hn::Neg(x), -87, 87))));
};

/// x y for the result y of gate, where `near` is x, or the end of the range in which y is neither 1 nor the product 0.
template <class D, class V>
HWY_INLINE V gated(D d, V x, V near, Sum<V> y) {
  const V product = hn::MulAdd(near, y.high, hn::Mul(near, y.low));
  return hn::IfThenElse(hn::Gt(x, near), x, hn::Mul(product, hn::Set(d, kGateUnit<hn::TFromD<D>>)));
}

/// y = x s with s = sigmoid(x)
template <bool rough>
constexpr auto kSilu = [](auto d, auto x) HWY_ATTR {
  if constexpr (rough)
    return hn::Mul(hn::Max(x, hn::Set(d, -100)), kSigmoid<true>(d, x));  // 0 and not NaN for -infinity
  const auto near = clamp(d, x, -kGateEnd<hn::TFromD<decltype(d)>>, 60);
  return gated(d, x, near, gate(d, Sum<decltype(x)>{hn::Neg(near), hn::Zero(d)}));
};

/// dx = dy s (1 + x (1 - s)), with x clamped where s is 0 or 1, since infinity times 0 is NaN
template <bool rough>
constexpr auto kSiluVjp = [](auto d, auto dy, auto x) HWY_ATTR {
  constexpr auto kEnd = kGateEnd<hn::TFromD<decltype(d)>>;
  const auto one = hn::Set(d, hn::TFromD<decltype(d)>{1}), s = kSigmoid<rough>(d, x);
  return hn::Mul(hn::Mul(dy, s), hn::MulAdd(clamp(d, x, -kEnd, kEnd), hn::Sub(one, s), one));
};

/// gelu's sigmoid, (1 + tanh(u)) / 2 = sigmoid(2 u), where 2 u = x (c + c' x^2) = sqrt(8 / pi) (x + 0.044715 x^3). It
/// makes up to 90 times as much of the rounding errors of its argument, so that has twice the digits.
template <class D, class V>
struct GeluGate {
  using T = hn::TFromD<D>;
  static constexpr T kScale = static_cast<T>(1.595703125);  // of so few bits that nothing is lost in slope - kScale
  static constexpr T kScaleLow = static_cast<T>(6.599660573071175978e-5);
  static constexpr double kExactCubic = 0.07135481627260025;
  static constexpr T kCubic = static_cast<T>(kExactCubic);
  static constexpr T kCubicLow = static_cast<T>(kExactCubic - double{kCubic} - 6.175149918155315e-19);
  V x, square;  // beyond the limits of x, the sigmoid is 1 or its product with x is 0

  HWY_INLINE GeluGate(D d, V unclamped)
      : x(sizeof(T) == 4 ? clamp(d, unclamped, static_cast<T>(-10.9), 6)
                         : clamp(d, unclamped, static_cast<T>(-21.6), static_cast<T>(8.6))),
        square(hn::Mul(x, x)) {}
  HWY_INLINE Sum<V> value(D d) const {
    const V cubic = hn::Set(d, kCubic), scale = hn::Set(d, kScale), minus = hn::Neg(x);
    const V slope = hn::MulAdd(square, cubic, scale), lost = hn::MulAdd(square, cubic, hn::Sub(scale, slope));
    const V of_square = hn::MulAdd(cubic, hn::MulSub(x, x, square), hn::Set(d, kScaleLow));
    const V slope_low = hn::Add(lost, hn::MulAdd(square, hn::Set(d, kCubicLow), of_square)), v = hn::Mul(minus, slope);
    return gate(d, Sum<V>{v, hn::MulAdd(minus, slope_low, hn::MulSub(minus, slope, v))});
  }
  template <bool rough>
  HWY_INLINE V sigmoid(D d) const {
    if constexpr (!rough) return rounded(d, value(d));
    return kSigmoid<true>(d, hn::Mul(x, hn::MulAdd(square, hn::Set(d, kCubic), hn::Set(d, kScale + kScaleLow))));
  }
  /// Of 2 u.
  HWY_INLINE V derivative(D d) const {
    return hn::MulAdd(square, hn::Set(d, 3 * kCubic), hn::Set(d, kScale + kScaleLow));
  }
  HWY_INLINE V second_derivative(D d) const { return hn::Mul(x, hn::Set(d, 6 * kCubic)); }
};

/// y = x s with s = sigmoid(2 u)
template <bool rough>
constexpr auto kGelu = [](auto d, auto x) HWY_ATTR {
  const GeluGate u(d, x);
  if constexpr (rough) return hn::IfThenElse(hn::Gt(x, u.x), x, hn::Mul(u.x, u.template sigmoid<true>(d)));
  return gated(d, x, u.x, u.value(d));
};

/// dx = dy s (1 + x (1 - s) 2 u')
template <bool rough>
constexpr auto kGeluVjp = [](auto d, auto dy, auto x) HWY_ATTR {
  const GeluGate u(d, x);
  const auto one = hn::Set(d, hn::TFromD<decltype(d)>{1}), s = u.template sigmoid<rough>(d);
  return hn::Mul(hn::Mul(dy, s), hn::MulAdd(hn::Mul(u.x, u.derivative(d)), hn::Sub(one, s), one));
};

/// dx = dy s (1 - s) (2 (2 u') + x ((1 - 2 s) (2 u')^2 + 2 u'')), of the derivative
constexpr auto kGeluSecondVjp = [](auto d, auto dy, auto x) HWY_ATTR {
  const GeluGate u(d, x);
  const auto one = hn::Set(d, hn::TFromD<decltype(d)>{1}), s = rounded(d, u.value(d)), rest = hn::Sub(one, s);
  const auto slope = u.derivative(d);
  const auto bend = hn::MulAdd(hn::Mul(hn::Sub(rest, s), slope), slope, u.second_derivative(d));
  return hn::Mul(hn::Mul(dy, hn::Mul(s, rest)), hn::MulAdd(u.x, bend, hn::Add(slope, slope)));
};

/// y = x cdf(x); far out, where the cdf is 0 or 1, x is clamped to keep the product and its square finite.
constexpr auto kGeluErf = [](auto d, auto x) HWY_ATTR {
  using T = hn::TFromD<decltype(d)>;
  const auto y = in_double(
      d, [](auto d, auto x) HWY_ATTR { return hn::Mul(x, normal<T>(d, x).cdf); }, clamp(d, x, -40, 40));
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, T{40})), x, y);
};

constexpr double kDensity = std::numbers::inv_sqrtpi / std::numbers::sqrt2;

/// dx = dy (cdf(x) + x pdf(x))
constexpr auto kGeluErfVjp = [](auto d, auto dy, auto x) HWY_ATTR {
  using T = hn::TFromD<decltype(d)>;
  const auto slope = [](auto d, auto x) HWY_ATTR {
    const auto of = normal<T>(d, x);
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

/// sin(x), or with a quarter turn cos(x), in double. x = q pi / 2 + r + low with pi / 2 in three parts, whose products
/// with q are exact up to a million; series of fdlibm's k_sin.c and k_cos.c. Beyond, rarely, the standard library's.
template <int kQuarters, class D, class V>
HWY_INLINE V turned(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto set = [d](double value) HWY_ATTR { return hn::Set(d, value); };
  const V shifted = hn::MulAdd(x, set(2 * std::numbers::inv_pi), set(0x1.8p52)), q = hn::Sub(shifted, set(0x1.8p52));
  const V first = hn::NegMulAdd(q, set(1.57079632673412561417), x), second = set(6.07710050630396597660e-11);
  const V r = hn::NegMulAdd(q, second, first), lost = hn::NegMulAdd(q, second, hn::Sub(first, r));
  const V low = hn::NegMulAdd(q, set(2.02226624879595063154e-21), lost), z = hn::Mul(r, r), half = hn::Mul(z, set(0.5));
  const V odd = polynomial(d, z,
                           {1.58969099521155010221e-10, -2.50507602534068634195e-8, 2.75573137070700676789e-6,
                            -1.98412698298579493134e-4, 8.33333333332248946124e-3, -1.66666666666666324348e-1});
  const V even = polynomial(d, z,
                            {-1.13596475577881948265e-11, 2.08757232129817482790e-9, -2.75573143513906633035e-7,
                             2.48015872894767294178e-5, -1.38888888888741095749e-3, 4.16666666666666019037e-2});
  const V sine = hn::Add(r, hn::MulAdd(hn::Mul(z, r), odd, low)), most = hn::Sub(set(1), half);
  const V tail = hn::MulAdd(hn::Mul(z, z), even, hn::NegMulAdd(r, low, hn::Sub(hn::Sub(set(1), most), half)));
  const auto turns = hn::Add(hn::BitCast(di, shifted), hn::Set(di, kQuarters));
  const auto is_cosine = hn::RebindMask(d, hn::TestBit(turns, hn::Set(di, 1)));
  const V sign = hn::BitCast(d, hn::ShiftLeft<62>(hn::And(turns, hn::Set(di, 2))));
  V y = hn::Xor(hn::IfThenElse(is_cosine, hn::Add(most, tail), sine), sign);
  if constexpr (kQuarters == 0) y = hn::IfThenElse(hn::Lt(hn::Abs(x), set(0x1p-30)), x, y);  // -0 of -0
  const auto near = hn::Lt(hn::Abs(x), set(1e6));
  if (hn::AllTrue(d, near)) return y;
  HWY_ALIGN double lanes[hn::MaxLanes(d)];
  hn::Store(x, d, lanes);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = kQuarters == 0 ? std::sin(lanes[i]) : std::cos(lanes[i]);
  return hn::IfThenElse(near, y, hn::Load(d, lanes));
}

template <int kQuarters>
constexpr auto kSin = [](auto d, auto x) HWY_ATTR {
  return in_double(
      d, [](auto d, auto x) HWY_ATTR { return turned<kQuarters>(d, x); }, x);
};

constexpr auto kCosVjp = [](auto d, auto dy, auto x) HWY_ATTR { return hn::Neg(hn::Mul(dy, kSin<0>(d, x))); };

/// y = w z softplus(-x) + (1 - z) softplus(x): no term is negative, so that nothing cancels, neither here nor, for z in
/// [0, 1], in the gradients.
constexpr auto kBinaryCrossEntropy = [](auto d, auto x, auto z, auto w) HWY_ATTR {
  const auto one = hn::Set(d, hn::TFromD<decltype(d)>{1});
  return hn::MulAdd(hn::Mul(w, z), softplus(d, hn::Neg(x)), hn::Mul(hn::Sub(one, z), softplus(d, x)));
};

/// dx = dy ((1 - z) sigmoid(x) - w z sigmoid(-x))
constexpr auto kBinaryCrossEntropyVjp = [](auto d, auto dy, auto x, auto z, auto w) HWY_ATTR {
  const auto rest = hn::Sub(hn::Set(d, hn::TFromD<decltype(d)>{1}), z);
  return hn::Mul(dy, hn::NegMulAdd(hn::Mul(w, z), sigmoid(d, hn::Neg(x)), hn::Mul(rest, sigmoid(d, x))));
};

/// dz = dy (w softplus(-x) - softplus(x))
constexpr auto kBinaryCrossEntropyVjpZ = [](auto d, auto dy, auto x, auto w) HWY_ATTR {
  return hn::Mul(dy, hn::MulSub(w, softplus(d, hn::Neg(x)), softplus(d, x)));
};

/// y = p (log(p) - log_q), 0 where p is
constexpr auto kKLDivergence = [](auto d, auto log_q, auto p) HWY_ATTR {
  return hn::IfThenElse(hn::Eq(p, hn::Zero(d)), p, hn::Mul(p, hn::Sub(log(d, p), log_q)));
};

/// dp = dy (log(p) + 1 - log_q)
constexpr auto kKLDivergenceVjpP = [](auto d, auto dy, auto log_q, auto p) HWY_ATTR {
  const auto one = hn::Set(d, hn::TFromD<decltype(d)>{1});
  return hn::Mul(dy, hn::Sub(hn::Add(log(d, p), one), log_q));
};

/// A kernel of n elements of some inputs and a result.
template <auto kF, class T, class... In>
void apply(const In*... x, T* y, std::int64_t n) {
  transform(kF, n, y, x...);
}

template <class T>
constexpr ElementwiseKernels<T> kTable = {
    .exp = apply<kExp, T, T>,
    .log = apply<[](auto d, auto x) HWY_ATTR { return log(d, x); }, T, T>,
    .log1p = apply<[](auto d, auto x) HWY_ATTR { return log1p(d, x); }, T, T>,
    .tanh = apply<[](auto d, auto x) HWY_ATTR { return tanh(d, x); }, T, T>,
    .sigmoid = apply<kSigmoid<kRough<T>>, T, T>,
    .sin = {apply<kSin<0>, T, T>, apply<kTimesSlope<kSin<1>>, T, T, T>},
    .cos = {apply<kSin<1>, T, T>, apply<kCosVjp, T, T, T>},
    // The slope is not y + 1, which is 0 where y rounds to -1.
    .expm1 = {apply<[](auto d, auto x) HWY_ATTR { return expm1(d, x); }, T, T>, apply<kTimesSlope<kExp>, T, T, T>},
    .softplus = {apply<[](auto d, auto x) HWY_ATTR { return softplus(d, x); }, T, T>,
                 apply<kTimesSlope<kSigmoid<false>>, T, T, T>},
    .silu = {apply<kSilu<kRough<T>>, T, T>, apply<kSiluVjp<kRough<T>>, T, T, T>},
    .gelu = {apply<kGelu<kRough<T>>, T, T>, apply<kGeluVjp<kRough<T>>, T, T, T>, apply<kGeluSecondVjp, T, T, T>},
    .gelu_erf = {apply<kGeluErf, T, T>, apply<kGeluErfVjp, T, T, T>, apply<kGeluErfSecondVjp, T, T, T>},
    .binary_cross_entropy = apply<kBinaryCrossEntropy, T, T, T, T>,
    .binary_cross_entropy_vjp = apply<kBinaryCrossEntropyVjp, T, T, T, T, T>,
    .binary_cross_entropy_vjp_z = apply<kBinaryCrossEntropyVjpZ, T, T, T, T>,
    .kl_divergence = apply<kKLDivergence, T, T, T>,
    .kl_divergence_vjp_p = apply<kKLDivergenceVjpP, T, T, T, T>};

Tables<ElementwiseKernels> tables() { return {kTable<float>, kTable<double>, kTable<bfloat16>}; }

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::kernels, Tables<ElementwiseKernels> elementwise_kernels())
