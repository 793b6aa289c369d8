#include <braid/autograd/ops/rotary_embedding.h>

#include <cmath>
#include <complex>

#include <braid/autograd/kernels/rotary.h>
#include <braid/autograd/ops/concat.h>
#include <braid/autograd/ops/detail/composing.h>

namespace braid {
namespace {

using kernels::In, kernels::Out;

struct Angles {
  Tensor cosine, sine;  // [T, P]
  bool halves, trailing;

  std::int64_t first(std::int64_t depth) const { return trailing ? depth - 2 * cosine.size(1) : 0; }
};

constexpr std::int64_t kTurns = 64;

/// Each position turns on from the one before; every 64 positions start anew, which keeps the error below 1e-13.
Angles angles(std::int64_t length, const RotaryTurns& turns, std::int64_t offset, DType dtype) {
  const std::int64_t pairs = std::ssize(turns.frequencies);
  Angles result{Tensor({length, pairs}, dtype), Tensor({length, pairs}, dtype), turns.layout == RotaryLayout::halves,
                turns.trailing};
  const std::int64_t skipped = (offset % kTurns + kTurns) % kTurns;  // positions since the last fresh start
  dispatch_float("rotary_embedding", dtype, [&]<class T>(T) {
    T *cosine = result.cosine.mutable_data<T>(), *sine = result.sine.mutable_data<T>();
    for (std::int64_t i = 0; i < pairs; ++i) {
      const double frequency = turns.frequencies[static_cast<std::size_t>(i)];
      const std::complex<double> step = std::polar(1.0, frequency);
      std::complex<double> turn;
      for (std::int64_t t = -skipped; t < length; ++t) {
        const bool fresh = (t + skipped) % kTurns == 0;
        turn = fresh ? std::polar(1.0, static_cast<double>(offset + t) * frequency) : turn * step;
        if (t < 0) continue;
        cosine[t * pairs + i] = static_cast<T>(turns.magnitude * turn.real());
        sine[t * pairs + i] = static_cast<T>(turns.magnitude * turn.imag());
      }
    }
  });
  return result;
}

/// The vjp of a rotation turns back: the matrix is transposed.
Tensor rotate(const Tensor& stored, const Angles& by, bool back) {
  const Tensor x = stored.to(by.cosine.dtype());
  Tensor y(x.shape(), x.dtype());
  kernels::rotary_kernels().dispatch("rotary_embedding", x.dtype(), [&](auto kernel) {
    if (x.numel() > 0)
      kernel({.length = x.size(1),
              .heads = x.size(2),
              .depth = x.size(3),
              .first = by.first(x.size(3)),
              .pairs = by.cosine.size(1),
              .halves = by.halves,
              .cosine = In{by.cosine},
              .sine = In{by.sine}},
             back, x.size(0), In{x}, Out{y});
  });
  return y.to(stored.dtype());
}

Var composed(const Var& x, const Angles& by) {
  const std::int64_t pairs = by.cosine.size(1), first = by.first(x.size(3)), last = first + 2 * pairs;
  const Shape split = by.halves ? Shape{2, pairs} : Shape{pairs, 2};
  const int axis = by.halves ? -2 : -1;
  const Var whole = detail::widened(x), part = slice(whole, -1, first, last);
  const Var v = reshape(part, part.shape().without(-1).concat(split));
  const Var a = select(v, axis, 0), b = select(v, axis, 1);
  const Var cosine = by.cosine.expand_dims(1), sine = by.sine.expand_dims(1);
  const Var turned = reshape(stack({a * cosine - b * sine, a * sine + b * cosine}, axis), part.shape());
  return cast(concat({slice(whole, -1, 0, first), turned, slice(whole, -1, last, x.size(3))}, -1), x.dtype());
}

}  // namespace

std::vector<double> rotary_frequencies(std::int64_t pairs, double base) {
  check_value(base > 0, "rotary_embedding: base must be positive but is {}", base);
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < pairs; ++i)
    frequencies.push_back(std::pow(base, -static_cast<double>(i) / static_cast<double>(pairs)));
  return frequencies;
}

Var rotary_embedding(const Var& x, double base, std::int64_t offset, RotaryLayout layout) {
  check_shape(x.rank() == 4 && x.size(3) % 2 == 0,
              "rotary_embedding: x must have shape [B, T, H, D] with an even D but has {}", x.shape());
  return rotary_embedding(x, {rotary_frequencies(x.size(3) / 2, base), layout}, offset);
}

Var rotary_embedding(const Var& x, const RotaryTurns& turns, std::int64_t offset) {
  const std::int64_t turning = 2 * std::ssize(turns.frequencies);
  check_shape(x.rank() == 4 && x.size(3) >= turning,
              "rotary_embedding: x must have shape [B, T, H, D >= {}] for {} frequencies but has {}", turning,
              turning / 2, x.shape());
  const Angles by = angles(x.size(1), turns, offset, compute_dtype(x.dtype()));
  if (Composed::active()) return composed(x, by);
  return record("rotary_embedding", rotate(x.value().contiguous(), by, false), {x},
                [by](const Tensor& dy) { return rotate(dy.contiguous(), by, true); });
}

}  // namespace braid
