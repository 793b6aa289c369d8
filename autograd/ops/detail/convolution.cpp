#include <braid/autograd/ops/detail/window.h>

#include <braid/autograd/ops/detail/composing.h>
#include <braid/autograd/ops/einsum.h>
#include <braid/core/kernels/scratch.h>
#include <braid/core/products/gemm.h>

namespace braid::detail {
namespace {

using kernels::Rows;

/// What a convolution multiplies: the rows x [B H W, C], y [B U V, O] and the taps of a window. y = x w for each tap
/// and group of channels; depthwise, w is a vector.
struct Convolution {
  Window window;
  std::int64_t groups, in, out;  // channels of x and y

  bool depthwise() const { return groups == in && groups == out; }
};

// Depthwise: y[t] = sum over k of w[k] x[s], dx[s] = sum over k of w[k] dy[t], dw[k] = sum over t of dy[t] x[s], where
// tap k of t reads s. The weight lies as [K, C], so that loops over channels are vectors.

/// `to += w[k] * from` for every tap.
template <class T>
void add_taps(const Window& window, Way way, std::int64_t channels, const T* from, const T* w, T* to) {
  for_each_tap(window, way, channels, [=](std::int64_t row, std::int64_t other, std::int64_t k) {
    if (other < 0) return;
    const T *x = from + other * channels, *tap = w + k * channels;
    T* y = to + row * channels;
    for (std::int64_t c = 0; c < channels; ++c) y[c] += tap[c] * x[c];
  });
}

/// Sums for each block of rows, added in the order of the blocks. -> [C, K]
template <class T>
Tensor depthwise_dw(const Convolution& conv, const T* dy, const T* x) {
  const std::int64_t channels = conv.in, taps = conv.window.taps();
  const Rows rows(conv.window.rows(Way::reads), channels);
  Tensor sums = zeros({rows.blocks(), taps, channels}, dtype_of<T>());
  T* to = sums.mutable_data<T>();
  for_each_tap(conv.window, Way::reads, channels, [=](std::int64_t row, std::int64_t other, std::int64_t k) {
    if (other < 0) return;
    const T *from = dy + row * channels, *read = x + other * channels;
    T* dw = to + (row / rows.block * taps + k) * channels;
    for (std::int64_t c = 0; c < channels; ++c) dw[c] += from[c] * read[c];
  });
  return reduce_sum(sums, {0}).transpose();
}

// Dense: the taps of some rows lie one after the other in a buffer that stays in cache, [rows, K C/G], for a product
// with w [K C/G, O/G]; y and dx alike, since dx is a convolution of dy over the readers of each position.

/// Rows whose taps are laid out at a time.
std::int64_t block_of(std::int64_t width) {
  return std::clamp<std::int64_t>(65536 / std::max<std::int64_t>(width, 1), 16, 256);
}

/// Channels [begin, begin + width) of the taps of rows [from, to) of a part. -> [rows, taps, width]
template <class T>
void lay_out(const WindowPart& part, std::int64_t from, std::int64_t to, const T* x, std::int64_t channels,
             std::int64_t begin, std::int64_t width, T* at) {
  part.for_each_tap(from, to, [&](std::int64_t, std::int64_t other, std::int64_t) {
    if (other < 0)
      std::fill_n(at, width, T{0});
    else
      std::copy_n(x + other * channels + begin, width, at);
    at += width;
  });
}

/// y [rows, out] = taps of x [others, in] times w [K, G, in / G, out / G] + bias [out], where a row has taps.
template <class T>
void multiply_taps(const Window& window, Way way, const Tensor& x, const Tensor& w, const Tensor& bias, Tensor& y) {
  const std::int64_t groups = w.size(1), width = w.size(2), n = w.size(3);
  const T *from = x.data<T>(), *row = bias.defined() ? bias.data<T>() : nullptr;
  T* const to = y.mutable_data<T>();
  for_each_part(window, way, [&](const WindowPart& part) {
    const std::int64_t k = part.taps() * width, block = block_of(k);
    kernels::Buffer<T> weights(groups * k * n);  // of the part's taps, [G, K, in / G, out / G]
    T* chosen = weights.data();
    for (std::int64_t g = 0; g < groups; ++g)
      for (const std::int64_t i : part.h.taps)
        for (const std::int64_t j : part.w.taps)
          chosen = std::copy_n(w.data<T>() + ((i * window.w.taps + j) * groups + g) * width * n, width * n, chosen);
    kernels::Scratch<T> scratch(block * (k + n));
    parallel_for(part.rows(), block, [&](std::int64_t begin, std::int64_t end) {
      scratch.lend([&](T* taps) {
        T* const sums = taps + block * k;
        for (std::int64_t g = 0; g < groups; ++g) {
          lay_out(part, begin, end, from, groups * width, g * width, width, taps);
          gemm_serial(Product<T>{.m = end - begin,
                                 .n = n,
                                 .k = k,
                                 .a = {taps, k},
                                 .b = {weights.data() + g * k * n, n},
                                 .c = {sums, n},
                                 .row = row == nullptr ? row : row + g * n});
          const T* sum = sums;
          part.for_each_row(begin, end, [&](std::int64_t r, auto...) {
            std::copy_n(sum, n, to + (r * groups + g) * n);
            sum += n;
          });
        }
      });
    });
  });
}

/// The transpose of the taps of x times dy, summed in order over at most 16 chunks of rows -> [G, K, in / G, out / G]
template <class T>
Tensor dense_dw(const Convolution& conv, const T* dy, const T* x) {
  const std::int64_t width = conv.in / conv.groups, n = conv.out / conv.groups, k = conv.window.taps() * width;
  const std::int64_t rows = conv.window.rows(Way::reads), block = block_of(k);
  const std::int64_t chunk = std::max(block, (rows + 15) / 16), chunks = (rows + chunk - 1) / chunk;
  Tensor sums = zeros({chunks, conv.groups, k, n}, dtype_of<T>());
  T* const to = sums.mutable_data<T>();
  kernels::Scratch<T> scratch(block * k);
  for_each_part(conv.window, Way::reads, [&](const WindowPart& part) {
    parallel_for(chunks, 1, [&](std::int64_t c, std::int64_t) {
      scratch.lend([&](T* taps) {
        for (std::int64_t first = c * chunk; first < std::min((c + 1) * chunk, rows); first += block)
          for (std::int64_t g = 0; g < conv.groups; ++g) {
            const std::int64_t last = std::min({first + block, (c + 1) * chunk, rows});
            lay_out(part, first, last, x, conv.in, g * width, width, taps);
            gemm_serial(Product<T>{.m = k,
                                   .n = n,
                                   .k = last - first,
                                   .a = {taps, k, true},
                                   .b = {dy + first * conv.out + g * n, conv.out},
                                   .c = {to + (c * conv.groups + g) * k * n, n},
                                   .beta = 1});
          }
      });
    });
  });
  return reduce_sum(sums, {0});
}

/// weight [O, C/G, ..] -> [K, G, C/G, O/G]
Tensor by_tap(const Convolution& conv, const Tensor& weight) {
  return weight.reshape({conv.groups, conv.out / conv.groups, conv.in / conv.groups, conv.window.taps()})
      .permute({3, 0, 2, 1})
      .contiguous();
}

/// x [B H W, C] -> [B U V, O], or the vjp, dy [B U V, O] -> dx [B H W, C], with w transposed for each tap.
template <class T>
Tensor convolve(const Convolution& conv, Way way, const Tensor& x, const Tensor& w, const Tensor& bias = {}) {
  const Shape shape{conv.window.rows(way), way == Way::reads ? conv.out : conv.in};
  Tensor y = bias.defined() ? bias.broadcast_to(shape).clone() : zeros(shape, x.dtype());
  if (conv.depthwise())
    add_taps(conv.window, way, conv.in, x.data<T>(), w.data<T>(), y.mutable_data<T>());
  else if (y.numel() > 0 && x.numel() > 0)
    multiply_taps<T>(conv.window, way, x, w, bias, y);
  return y;
}

/// -> the shape of the weight
template <class T>
Tensor vjp_weight(const Convolution& conv, const Tensor& dy, const Tensor& x, const Shape& weight) {
  if (dy.numel() == 0 || x.numel() == 0) return zeros(weight, dy.dtype());
  const Tensor dw = (conv.depthwise() ? depthwise_dw<T> : dense_dw<T>)(conv, dy.data<T>(), x.data<T>());
  return dw.reshape({conv.groups, conv.window.taps(), conv.in / conv.groups, conv.out / conv.groups})
      .permute({0, 3, 2, 1})
      .reshape(weight);
}

Var composed(const Convolution& conv, const Var& x, const Var& weight, const Var& bias) {
  const Window& window = conv.window;
  const std::int64_t in = conv.in / conv.groups, out = conv.out / conv.groups, rows = window.rows(Way::reads);
  const Var pictures = reshape(x, {window.batch, window.h.in, window.w.in, conv.in});
  const Var taps = reshape(unfold(pictures, window), {rows, window.taps(), conv.groups, in});
  const Var w = reshape(weight, {conv.groups, out, in, window.taps()});
  const Var y = reshape(einsum("rkgc,gock->rgo", taps, w), {rows, conv.out});
  return bias.value().defined() ? y + bias : y;
}

/// Throws ShapeError or ValueError naming `op` unless weight [out, C / groups, ..] fits x [.., C] and the groups.
void check_weight(const char* op, const Shape& x, const Shape& weight, std::int64_t groups) {
  check_setting(op, "groups", groups, 1);
  check_value(x[-1] % groups == 0 && weight[0] % groups == 0,
              "{}: {} groups must divide the {} channels of x and the {} outputs", op, groups, x[-1], weight[0]);
  check_shape(weight[1] == x[-1] / groups,
              "{}: weight must have shape [out, {}, {}] to match the {} channels of x in {} groups but has {}", op,
              x[-1] / groups, weight.rank() == 3 ? "K" : "K, L", x[-1], groups, weight);
}

}  // namespace

Var convolution(const char* op, const Var& x, const Var& weight, const Var& bias, const Window& window,
                std::int64_t groups) {
  check_weight(op, x.shape(), weight.shape(), groups);
  std::vector<std::int64_t> sizes{window.batch, window.w.out, weight.size(0)};
  if (x.rank() == 4) sizes.insert(sizes.begin() + 1, window.h.out);
  const Shape y(sizes, op);
  std::vector<Var> inputs{x, weight};
  if (bias.value().defined()) {
    check_same_dtype(op, weight.value(), bias.value());
    check_shape(bias.shape() == Shape{weight.size(0)}, "{}: bias must have shape [{}] to match weight {} but has {}",
                op, weight.size(0), weight.shape(), bias.shape());
    inputs.push_back(bias);
  }
  check_floating(op, x.dtype());
  check_same_dtype(op, x.value(), weight.value());
  const Convolution conv{window, groups, x.size(-1), weight.size(0)};
  if (Composed::active()) return reshape(composed(conv, x, weight, bias), y);
  const Tensor in = x.value().contiguous(), w = by_tap(conv, weight.value());
  return dispatch_float(op, x.dtype(), [&]<class T>(T) {
    return record(
        op, convolve<T>(conv, Way::reads, in, w, bias.value().contiguous()).reshape(y), inputs,
        [conv, in, w, shape = weight.shape(), biased = inputs.size() == 3](const Tensor& dy_in, const Needs& needs) {
          const Tensor dy = dy_in.reshape({conv.window.rows(Way::reads), conv.out}).contiguous();
          std::vector<Tensor> cotangents(2);
          if (needs[0])
            cotangents[0] = convolve<T>(conv, Way::readers, dy, w.transpose().contiguous()).reshape(in.shape());
          if (needs[1]) cotangents[1] = vjp_weight<T>(conv, dy, in, shape);
          if (biased) cotangents.push_back(needs[2] ? reduce_sum(dy, {0}) : Tensor());
          return cotangents;
        });
  });
}

}  // namespace braid::detail
