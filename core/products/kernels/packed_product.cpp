#include <braid/core/products/kernels/packed_product.h>

#include <algorithm>
#include <cstring>

#include <hwy/cache_control.h>

#define HWY_TARGET_INCLUDE "braid/core/products/kernels/packed_product.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/core/kernels/transpose-inl.h>
#include <braid/core/kernels/vector-inl.h>
#include <braid/core/products/kernels/block_product-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::kernels::HWY_NAMESPACE {
namespace {

// A tile of sums with 2 vectors of b and one of a fills 15 of 16 registers, 27 of 32. NEON has 32, too, but GCC loads
// all of a first: 8 rows with 2 vectors fill 26.
constexpr std::int64_t kRows = HWY_ARCH_ARM_A64 ? 8 : kManyRegisters ? 12 : 6;
constexpr int kVectors = 2;

/// Columns of a tile.
template <class T>
constexpr std::int64_t kColumns = kVectors * static_cast<std::int64_t>(hn::MaxLanes(hn::ScalableTag<T>()));

// Sizes of the packed blocks. A strip of b [kDepth, kColumns] stays in the first-level cache, the block of a
// [kRowBlock, kDepth] in the second, the block of b [kDepth, kColumnBlock] in the third.
constexpr std::int64_t kRowBlock = 96;
constexpr std::int64_t kColumnBlock = 768;

/// to [depth, kWidth] = the first `lines` rows of x, at most kWidth, side by side, and zeros.
template <std::int64_t kWidth, class T>
void pack_strip(MatrixView<const T> x, std::int64_t lines, std::int64_t depth, T* to) {
  constexpr std::int64_t kSide = kSquare<T>;
  const std::int64_t row_step = x.row_step(), column_step = x.column_step();
  const std::int64_t square_depth = column_step == 1 && lines >= kSide ? depth / kSide * kSide : 0;
  for (std::int64_t p = 0; p < square_depth; p += kSide) {
    for (std::int64_t i = 0; i < lines; i += kSide) {
      const std::int64_t line = std::min(i, lines - kSide);  // the last square may overlap the one before
      transpose_square(x.data + line * row_step + p, row_step, to + p * kWidth + line, kWidth);
    }
  }
  for (std::int64_t p = 0; p < depth; ++p)
    for (std::int64_t i = p < square_depth ? lines : 0; i < kWidth; ++i)
      to[p * kWidth + i] = i < lines ? x.data[i * row_step + p * column_step] : T{0};
}

/// to [ceil(lines / kWidth), depth, kWidth]
template <std::int64_t kWidth, class T>
void pack(MatrixView<const T> x, std::int64_t lines, std::int64_t depth, T* to) {
  const std::int64_t whole = x.row_step() == 1 ? lines / kWidth * kWidth : 0;  // copied in the order of memory
  for (std::int64_t p = 0; whole > 0 && p < depth; ++p)
    for (std::int64_t i = 0; i < whole; i += kWidth)
      std::memcpy(to + i * depth + p * kWidth, x.data + p * x.column_step() + i, kWidth * sizeof(T));
  for (std::int64_t i = whole; i < lines; i += kWidth)
    pack_strip<kWidth>(x.from(i, 0), std::min(kWidth, lines - i), depth, to + i * depth);
}

/// c = alpha * sums + beta * c for the elements of a vector.
template <class T, class Elements>
HWY_INLINE void update(Elements part, const T* sums, T alpha, T beta, T* c) {
  const hn::ScalableTag<T> d;
  const auto product = hn::Mul(hn::Set(d, alpha), hn::Load(d, sums));
  part.store(beta == T{0} ? product : hn::MulAdd(hn::Set(d, beta), part.load(d, c), product), d, c);
}

/// A tile of c, from packed rows of a and a packed strip of b. Not inline: AVX2 has no registers left for alpha and
/// beta beside the sums.
template <int kCount, class T>
HWY_NOINLINE void multiply_whole_tile(const Product<T>& p, const T* a, const T* b, MatrixView<T> c) {
  const hn::ScalableTag<T> d;
  hn::Vec<decltype(d)> sums[kRows][kCount];
  HWY_UNROLL(16)
  for (int i = 0; i < kRows; ++i) {
    hwy::Prefetch(c.from(i, 0).data);
    for (int j = 0; j < kCount; ++j) sums[i][j] = hn::Zero(d);
  }
  add_tile<kRows, kCount, T>(p.k, {a, 1, kRows}, {b, kColumns<T>}, sums);
  const auto alpha = hn::Set(d, p.alpha), beta = hn::Set(d, p.beta);
  HWY_UNROLL(16)
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kCount; ++j) {
      T* const to = c.from(i, j * static_cast<std::int64_t>(hn::Lanes(d))).data;
      const auto product = hn::Mul(alpha, sums[i][j]);
      hn::StoreU(p.beta == T{0} ? product : hn::MulAdd(beta, hn::LoadU(d, to), product), d, to);
    }
  }
}

/// A strip of columns of c: a holds packed rows [m], b one strip.
template <int kCount, class T>
void multiply_strip(const Product<T>& p, const T* a, const T* b) {
  constexpr std::int64_t kWidth = kCount * hn::MaxLanes(hn::ScalableTag<T>());
  HWY_ALIGN T sums[kRows * kWidth];
  for (std::int64_t i = 0; i < p.m; i += kRows, a += kRows * p.k) {
    const std::int64_t rows = std::min(kRows, p.m - i);
    if (rows == kRows && p.n == kWidth) {
      multiply_whole_tile<kCount>(p, a, b, p.c.from(i, 0));
      continue;
    }
    multiply_tile<kRows, kCount, T>(p.k, {a, 1, kRows}, {b, kColumns<T>}, {sums, kWidth}, false);
    for (std::int64_t row = 0; row < rows; ++row) {
      for_each_vector(hn::ScalableTag<T>(), p.n, [&](std::int64_t j, auto part) HWY_ATTR {
        update(part, sums + row * kWidth + j, p.alpha, p.beta, p.c.from(i + row, j).data);
      });
    }
  }
}

/// c of packed operands: strips of rows of a and of columns of b.
template <class T>
void multiply_packed(Product<T> p, const T* a, const T* b) {
  const std::int64_t lanes = hn::Lanes(hn::ScalableTag<T>()), n = p.n;
  for (std::int64_t j = 0; j < n; j += kColumns<T>, b += p.k * kColumns<T>, p.c.data += kColumns<T>) {
    p.n = std::min(kColumns<T>, n - j);
    if (p.n > lanes)
      multiply_strip<2>(p, a, b);
    else
      multiply_strip<1>(p, a, b);
  }
}

/// Up to kCount rows times the first columns that fill vectors; returns their number. Sums take kDepth elements at a
/// time as in `multiply` and have the same bits.
template <std::int64_t kCount, class T, class B>
std::int64_t multiply_few_rows(const Product<T>& p, MatrixView<const B> b, T* packed_a) {
  constexpr std::int64_t kLanes = hn::MaxLanes(hn::ScalableTag<T>());
  constexpr int kAcross = kCount <= 2 ? 4 : kCount <= 4 || kManyRegisters ? 2 : 1;  // as the registers hold
  pack<kCount>(p.a, p.m, p.k, packed_a);
  const std::int64_t width = b.transposed ? kLanes : kAcross * kLanes;
  HWY_ALIGN T sums[kCount * kAcross * kLanes];
  std::int64_t j = 0;
  for (; j + width <= p.n; j += width) {
    for (std::int64_t begin = 0; begin < p.k; begin += kDepth<T>) {
      const std::int64_t depth = std::min(kDepth<T>, p.k - begin);
      const Scalars<T> rows{packed_a + begin * kCount, 1, kCount};
      const Panel<const B> columns{b.from(begin, j).data, b.stride};
      if (b.transposed)
        multiply_transposed<kCount, T, B>(depth, rows, columns, {sums, width});
      else
        multiply_tile<kCount, kAcross, T, B>(depth, rows, columns, {sums, width}, false);
      const T beta = begin == 0 ? p.beta : T{1};
      for (std::int64_t i = 0; i < p.m; ++i)
        for (std::int64_t v = 0; v < width; v += kLanes)
          update(Whole{}, sums + i * width + v, p.alpha, beta, p.c.data + i * p.c.stride + j + v);
    }
  }
  return j;
}

/// In the time that it takes to read b.
template <class T, class B>
std::int64_t multiply_few_rows(const Product<T>& p, MatrixView<const B> b, T* scratch) {
  if (p.m == 1) return multiply_few_rows<1>(p, b, scratch);
  if (p.m == 2) return multiply_few_rows<2>(p, b, scratch);
  return p.m <= 4 ? multiply_few_rows<4>(p, b, scratch) : multiply_few_rows<kFewRows>(p, b, scratch);
}

template <class T>
std::int64_t scratch(std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t depth = round_up(std::min(k, kDepth<T>), 16);
  const std::int64_t packed =
      depth * (round_up(std::min(m, kRowBlock), kRows) + round_up(std::min(n, kColumnBlock), kColumns<T>));
  return m <= kFewRows ? std::max(packed, kFewRows * k) : packed;
}

template <class T>
void multiply(Product<T> p, T* scratch) {
  if (p.m <= kFewRows) {
    const std::int64_t done = multiply_few_rows(p, p.b, scratch);
    p.n -= done;
    p.b = p.b.from(0, done);
    p.c = p.c.from(0, done);
  }
  const MatrixView<const T> columns_of_b = p.b.transpose();
  T* const packed_a = scratch;
  T* const packed_b = scratch + round_up(std::min(p.m, kRowBlock), kRows) * round_up(std::min(p.k, kDepth<T>), 16);
  Product<T> part = p;
  for (std::int64_t j = 0; j < p.n; j += kColumnBlock) {
    part.n = std::min(kColumnBlock, p.n - j);
    for (std::int64_t depth = 0; depth < p.k; depth += kDepth<T>) {
      part.k = std::min(kDepth<T>, p.k - depth);
      part.beta = depth == 0 ? p.beta : T{1};
      pack<kColumns<T>>(columns_of_b.from(j, depth), part.n, part.k, packed_b);
      for (std::int64_t i = 0; i < p.m; i += kRowBlock) {
        part.m = std::min(kRowBlock, p.m - i);
        part.c = p.c.from(i, j);
        pack<kRows>(p.a.from(i, depth), part.m, part.k, packed_a);
        multiply_packed(part, packed_a, packed_b);
      }
    }
  }
}

Tables<PackedProductKernels> tables() {
  return {
      {.scratch = scratch<float>, .multiply = multiply<float>, .multiply_by_bf16 = multiply_few_rows<float, bfloat16>},
      {.scratch = scratch<double>, .multiply = multiply<double>}};
}

}  // namespace
}  // namespace braid::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::kernels, Tables<PackedProductKernels> packed_product_kernels())
