#include <braid/core/random.h>

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include <braid/core/kernels/elements.h>
#include <braid/core/parallel.h>

namespace braid {
namespace {

using Words = std::array<std::uint32_t, 4>;

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) of the rng's next draw.
Words philox(const Rng& rng, std::uint64_t index) {
  const std::uint64_t key = rng.key(), draw = rng.draws();
  Words c{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), static_cast<std::uint32_t>(draw),
          static_cast<std::uint32_t>(draw >> 32)};
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0], b = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(a)};
    k0 += 0x9E3779B9;  // golden ratio
    k1 += 0xBB67AE85;  // sqrt(3) - 1
  }
  return c;
}

std::uint64_t join(std::uint32_t high, std::uint32_t low) { return std::uint64_t{high} << 32 | low; }

/// 53 random bits as a number in [0, 1).
double unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

/// 64 bits of the rng's next draw.
std::uint64_t bits_at(const Rng& rng, std::uint64_t index) {
  const Words w = philox(rng, index);
  return join(w[0], w[1]);
}

/// The rng before it moves on by a draw.
Rng next_draw(Rng& rng) { return std::exchange(rng, Rng(rng.key(), rng.draws() + 1)); }

/// A tensor that fill(first, n, out) fills in pieces.
Tensor generate(const char* op, const Shape& shape, DType dtype, auto fill) {
  Tensor t(shape, dtype);
  dispatch_float(op, dtype, [&]<class T>(T) {
    T* out = t.mutable_data<T>();
    parallel_for(t.numel(), 4096, [&](std::int64_t begin, std::int64_t end) { fill(begin, end - begin, out + begin); });
  });
  return t;
}

}  // namespace

std::uint64_t Rng::bits() { return bits_at(next_draw(*this), 0); }

Rng Rng::split() { return Rng(bits_at(next_draw(*this), ~std::uint64_t{0})); }  // an index that no tensor reaches

std::int64_t Rng::below(std::int64_t n) {
  check_value(n > 0, "Rng::below: n must be positive but is {}", n);
  return static_cast<std::int64_t>(uniform() * static_cast<double>(n));
}

double Rng::uniform() { return unit(bits()); }

// f32 keeps 24 bits, so that rounding never reaches 1.
template <class T>
void rand_elements(const Rng& rng, std::int64_t first, std::int64_t n, T* out) {
  if constexpr (std::is_same_v<T, float>)
    kernels::element_kernels().uniform(rng.key(), rng.draws(), static_cast<std::uint64_t>(first), n, out);
  else
    for (std::int64_t i = 0; i < n; ++i) out[i] = unit(bits_at(rng, static_cast<std::uint64_t>(first + i)));
}

template void rand_elements(const Rng&, std::int64_t, std::int64_t, float*);
template void rand_elements(const Rng&, std::int64_t, std::int64_t, double*);

Tensor rand(const Shape& shape, Rng& rng, DType dtype) {
  const Rng draw = next_draw(rng);
  return generate("rand", shape, dtype,
                  [&](std::int64_t first, std::int64_t n, auto* out) { rand_elements(draw, first, n, out); });
}

Tensor randn(const Shape& shape, Rng& rng, DType dtype) {
  const Rng draw = next_draw(rng);
  return generate("randn", shape, dtype, [&]<class T>(std::int64_t first, std::int64_t n, T* out) {
    for (std::int64_t i = 0; i < n; ++i) {
      const Words w = philox(draw, static_cast<std::uint64_t>(first + i));
      const double radius = std::sqrt(-2 * std::log1p(-unit(join(w[0], w[1]))));
      out[i] = static_cast<T>(radius * std::cos(2 * std::numbers::pi * unit(join(w[2], w[3]))));
    }
  });
}

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, Rng& rng) {
  using Limits = std::numeric_limits<std::int32_t>;
  check_value(low < high, "randint: low {} must be below high {}", low, high);
  check_value(low >= Limits::min() && high - 1 <= Limits::max(), "randint: [{}, {}) must lie in the range of i32", low,
              high);
  const Tensor uniform = rand(shape, rng, DType::f64);
  const double* u = uniform.data<double>();
  Tensor t(shape, DType::i32);
  std::int32_t* out = t.mutable_data<std::int32_t>();
  for (std::int64_t i = 0; i < t.numel(); ++i)
    out[i] = static_cast<std::int32_t>(low + static_cast<std::int64_t>(u[i] * static_cast<double>(high - low)));
  return t;
}

Tensor randperm(std::int64_t n, Rng& rng) {
  check_value(0 <= n && n <= std::int64_t{1} << 31, "randperm: n must lie in [0, 2^31] but is {}", n);
  const Tensor uniform = rand({n}, rng, DType::f64);
  Tensor t = arange(n, DType::i32);
  std::int32_t* out = t.mutable_data<std::int32_t>();
  for (std::int64_t i = 0; i < n; ++i)  // the i-th is one of those that are left
    std::swap(out[i], out[i + static_cast<std::int64_t>(uniform.data<double>()[i] * static_cast<double>(n - i))]);
  return t;
}

}  // namespace braid
