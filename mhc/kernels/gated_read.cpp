#include <braid/mhc/kernels/gated_read.h>

#include <algorithm>

#include <braid/core/products/gemm.h>

#define HWY_TARGET_INCLUDE "braid/mhc/kernels/gated_read.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/math-inl.h>
#include <braid/mhc/kernels/inner_products-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {
namespace {

using braid::kernels::HWY_NAMESPACE::for_each_vector, braid::kernels::HWY_NAMESPACE::sigmoid;
using braid::kernels::HWY_NAMESPACE::transform;

struct GatedSizes : StreamSizes {
  std::int64_t rank, rows;
  bool writes;

  explicit GatedSizes(const GatedRead& in)
      : StreamSizes(sizes_of(in.x.shape())), rank(in.up.size(1)), rows(in.in.size(0)), writes(rows > rank) {}
};

/// Intermediate results for the tokens of one tile, or for all tokens.
template <class T>
struct Buffers {
  T *normed, *gates, *h, *dz;  // [tokens, nC], [tokens, nC], [tokens, rank], [tokens, rows]

  static std::int64_t size(const GatedSizes& s, std::int64_t tokens) {
    return tokens * (2 * s.width() + s.rank + s.rows);
  }

  /// Those from the token `first` on.
  Buffers(const GatedSizes& s, std::int64_t tokens, T* scratch, std::int64_t first = 0)
      : normed(scratch + first * s.width()),
        gates(scratch + (tokens + first) * s.width()),
        h(scratch + 2 * tokens * s.width() + first * s.rank),
        dz(scratch + tokens * (2 * s.width() + s.rank) + first * s.rows) {}
};

/// Tiles of enough tokens that the products do not wait for their weights.
template <class T>
Tiles tiles_for(const GatedSizes& s) {
  return {s.tokens, std::max<std::int64_t>(64, tiles_of<T>(s).size)};
}

constexpr auto kSilu = [](auto d, auto v) HWY_ATTR { return hn::Mul(v, sigmoid(d, v)); };

/// dv = dy s (1 + v (1 - s)), s = sigmoid(v)
constexpr auto kSiluVjp = [](auto d, auto v, auto dy) HWY_ATTR {
  const auto s = sigmoid(d, v);
  return hn::Mul(hn::Mul(dy, s), hn::MulAdd(v, hn::Sub(hn::Set(d, 1), s), hn::Set(d, 1)));
};

constexpr auto kTwiceSigmoid = [](auto d, auto v) HWY_ATTR {
  const auto s = sigmoid(d, v);
  return hn::Add(s, s);
};

/// dv = 2 dy s (1 - s)
constexpr auto kTwiceSigmoidVjp = [](auto d, auto v, auto dy) HWY_ATTR {
  const auto s = sigmoid(d, v);
  return hn::Mul(hn::Add(dy, dy), hn::Mul(s, hn::Sub(hn::Set(d, 1), s)));
};

/// normed = x rstd (1 + norm) of the streams of a tile.
template <class T>
void normalize_tile(const GatedSizes& s, const T* norm_weights, std::int64_t count, const T* x, const T* rstd,
                    T* normed) {
  for (std::int64_t row = 0; row < count * s.n; ++row, x += s.channels, normed += s.channels) {
    const auto normalize = [scale = rstd[row]](auto d, auto v, auto norm) HWY_ATTR {
      const auto scaled = hn::Mul(hn::Set(d, scale), v);
      return hn::MulAdd(scaled, norm, scaled);
    };
    transform(normalize, s.channels, normed, x, norm_weights + row % s.n * s.channels);
  }
}

/// The gates of a tile before their sigmoid: h = silu(z_low), gates = h up^T.
template <class T>
void gate_logits(const GatedSizes& s, const T* up_weights, std::int64_t count, const T* z, const Buffers<T>& tile) {
  const std::int64_t width = s.width(), rank = s.rank;
  for (std::int64_t t = 0; t < count; ++t) transform(kSilu, rank, tile.h + t * rank, z + t * s.rows);
  const MatrixView<const T> up{up_weights, rank};
  gemm_serial<T>(
      {.m = count, .n = width, .k = rank, .a = {tile.h, rank}, .b = up.transpose(), .c = {tile.gates, width}});
}

/// u = share sum_i sigmoid(gates_i) normed_i of one token.
template <class T>
void gated_sum(std::int64_t n, std::int64_t channels, T share, const T* gates, const T* normed, T* u) {
  const hn::ScalableTag<T> d;
  for_each_vector(d, channels, [=](std::int64_t c, auto part) HWY_ATTR {
    auto sum = hn::Zero(d);
    for (std::int64_t at = c; at < n * channels; at += channels)
      sum = hn::MulAdd(sigmoid(d, part.load(d, gates + at)), part.load(d, normed + at), sum);
    part.store(hn::Mul(hn::Set(d, share), sum), d, u + c);
  });
}

template <class T>
void read(const GatedRead& in, double eps, GatedSaved& saved, Tensor& u_out, Tensor& post_out) {
  const GatedSizes s(in);
  const std::int64_t n = s.n, channels = s.channels, rows = s.rows, width = s.width();
  const T *norm = In{in.norm}, *in_weights = In{in.in}, *up = In{in.up}, *all_x = In{in.x};
  T *all_rstd = Out{saved.rstd}, *all_z = Out{saved.z}, *u = Out{u_out}, *post = Out{post_out};
  const T share = T{1} / static_cast<T>(n);
  const auto read_tile = [=](const Buffers<T>& tile, std::int64_t begin, std::int64_t end) HWY_ATTR {
    const std::int64_t count = end - begin;
    const T* x = all_x + begin * width;
    T *rstd = all_rstd + begin * n, *z = all_z + begin * rows;
    inverse_rms_of(count * n, channels, x, eps, rstd);
    normalize_tile(s, norm, count, x, rstd, tile.normed);
    const MatrixView<const T> in_rows{in_weights, width};
    gemm_serial<T>({.m = count,
                    .n = rows,
                    .k = width,
                    .a = {tile.normed, width},
                    .b = in_rows.transpose(),
                    .c = {z, rows},
                    .alpha = share});
    gate_logits(s, up, count, z, tile);
    for (std::int64_t t = 0; t < count; ++t) {
      gated_sum(n, channels, share, tile.gates + t * width, tile.normed + t * width, u + (begin + t) * channels);
      if (s.writes) transform(kTwiceSigmoid, n, post + (begin + t) * n, z + t * rows + s.rank);
    }
  };
  const Tiles tiles = tiles_for<T>(s);
  Scratch<T> scratch(Buffers<T>::size(s, tiles.size));
  tiles.for_each([&](std::int64_t begin, std::int64_t end) {
    scratch.lend([&](T* buffer) { read_tile(Buffers<T>(s, tiles.size, buffer), begin, end); });
  });
}

/// Of one token, q = share du: dnormed_i = q g_i; gates become their logits' cotangents q normed_i g_i (1 - g_i).
template <class T>
void gated_sum_vjp(std::int64_t n, std::int64_t channels, T share, const T* du, const T* normed, T* gates, T* dnormed) {
  const hn::ScalableTag<T> d;
  for_each_vector(d, channels, [=](std::int64_t c, auto part) HWY_ATTR {
    const auto q = hn::Mul(hn::Set(d, share), part.load(d, du + c));
    for (std::int64_t at = c; at < n * channels; at += channels) {
      const auto logit = part.load(d, gates + at), dn = hn::Mul(q, sigmoid(d, logit));
      part.store(dn, d, dnormed + at);
      const auto rest = sigmoid(d, hn::Neg(logit));  // 1 - g, which would cancel where g is near 1
      part.store(hn::Mul(hn::Mul(dn, part.load(d, normed + at)), rest), d, gates + at);
    }
  });
}

/// The norm of one stream backwards: dnorm += dnormed x rstd, and dnormed becomes
/// dx = rstd (1 + norm) dnormed - pull x (+ dy), pull = rstd^2 <dnormed, normed> / C.
template <class T>
void normalize_vjp(std::int64_t channels, const T* x, T rstd, const T* norm, const T* normed, const T* dy, T* dnormed,
                   T* dnorm) {
  const hn::ScalableTag<T> d;
  T product = 0;
  inner_products(1, 1, channels, dnormed, normed, &product);
  const T pull = rstd * rstd * product / static_cast<T>(channels);
  for_each_vector(d, channels, [=](std::int64_t c, auto part) HWY_ATTR {
    const auto v = part.load(d, x + c), g = hn::Mul(hn::Set(d, rstd), part.load(d, dnormed + c));
    part.store(hn::MulAdd(g, v, part.load(d, dnorm + c)), d, dnorm + c);
    const auto through = hn::NegMulAdd(hn::Set(d, pull), v, hn::MulAdd(g, part.load(d, norm + c), g));
    part.store(dy == nullptr ? through : hn::Add(through, part.load(d, dy + c)), d, dnormed + c);
  });
}

/// dz of a tile from dgates [count, nC]; dpost is that of the tile.
template <class T>
void gate_logits_vjp(const GatedSizes& s, const T* up, std::int64_t count, const T* z, const T* dpost,
                     const Buffers<T>& tile) {
  const std::int64_t rank = s.rank, rows = s.rows, width = s.width();
  gemm_serial<T>({.m = count, .n = rank, .k = width, .a = {tile.gates, width}, .b = {up, rank}, .c = {tile.dz, rows}});
  for (std::int64_t t = 0; t < count; ++t, z += rows) {
    T* dz = tile.dz + t * rows;
    transform(kSiluVjp, rank, dz, z, dz);
    if (s.writes) transform(kTwiceSigmoidVjp, s.n, dz + rank, z + rank, dpost + t * s.n);
  }
}

/// The products for the parameters follow for all tokens at once: tile by tile they would wait for their own sums.
template <class T>
void vjp(const GatedRead& in, const GatedSaved& saved, const Tensor& du_in, const Tensor& dy_in, const Tensor& dpost_in,
         GatedRead& d) {
  const GatedSizes s(in);
  const std::int64_t tokens = s.tokens, n = s.n, channels = s.channels, rank = s.rank, rows = s.rows, width = s.width();
  const T *norm = In{in.norm}, *in_weights = In{in.in}, *up = In{in.up}, *x = In{in.x}, *rstd = In{saved.rstd};
  const T *z = In{saved.z}, *du = In{du_in}, *dy = In{dy_in}, *dpost = In{dpost_in}, share = T{1} / static_cast<T>(n);
  T* const dx = Out{d.x};  // until the last step the cotangents of the normed streams
  Buffer<T> memory(Buffers<T>::size(s, tokens));
  const Buffers<T> all(s, tokens, memory.data());
  const auto vjp_tile = [=, scratch = memory.data()](T* dnorm, std::int64_t begin, std::int64_t end) HWY_ATTR {
    const Buffers<T> tile(s, tokens, scratch, begin);
    const std::int64_t count = end - begin;
    normalize_tile(s, norm, count, x + begin * width, rstd + begin * n, tile.normed);
    gate_logits(s, up, count, z + begin * rows, tile);
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t at = (t - begin) * width;
      gated_sum_vjp(n, channels, share, du + t * channels, tile.normed + at, tile.gates + at, dx + t * width);
    }
    gate_logits_vjp(s, up, count, z + begin * rows, at(dpost, begin * n), tile);
    gemm_serial<T>({.m = count,
                    .n = width,
                    .k = rows,
                    .a = {tile.dz, rows},
                    .b = {in_weights, width},
                    .c = {dx + begin * width, width},
                    .alpha = share,
                    .beta = 1});
    for (std::int64_t row = begin * n; row < end * n; ++row) {
      const std::int64_t at = row * channels, weight = row % n * channels;
      normalize_vjp(channels, x + at, rstd[row], norm + weight, tile.normed + (at - begin * width),
                    dy == nullptr ? nullptr : dy + at, dx + at, dnorm + weight);
    }
  };
  sum_over_tiles<T>(tiles_for<T>(s), {{Out{d.norm}, width}}, vjp_tile);
  const MatrixView<const T> gates{all.gates, width}, dz{all.dz, rows};
  gemm<T>({.m = width, .n = rank, .k = tokens, .a = gates.transpose(), .b = {all.h, rank}, .c = {Out{d.up}, rank}});
  gemm<T>({.m = rows,
           .n = width,
           .k = tokens,
           .a = dz.transpose(),
           .b = {all.normed, width},
           .c = {Out{d.in}, width},
           .alpha = share});
}

template <class T>
constexpr GatedReadKernels<T> kTable = {.read = read<T>, .vjp = vjp<T>};

braid::kernels::Tables<GatedReadKernels> tables() { return {kTable<float>, kTable<double>}; }

}  // namespace
}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::mhc::kernels, braid::kernels::Tables<GatedReadKernels> gated_read_kernels())
