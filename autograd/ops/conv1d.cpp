#include <braid/autograd/ops/conv1d.h>

#include <algorithm>
#include <array>

#include <braid/autograd/kernels/rows.h>
#include <braid/autograd/ops/detail/composing.h>
#include <braid/autograd/ops/einsum.h>
#include <braid/autograd/ops/index_select.h>
#include <braid/autograd/ops/pad.h>
#include <braid/autograd/ops/transpose.h>
#include <braid/core/products/matmul.h>

namespace braid {
namespace {

using kernels::Rows;

/// Which positions of x [B, T, C] and y [B, U, O] meet: tap k of position t of y reads `t stride + k dilation - front`.
struct Taps {
  std::int64_t batch, in, out;  // B, T, U
  std::int64_t count;           // K
  std::int64_t stride, dilation, front, groups;

  /// The position of x that tap k of position t of y reads; -1 in the padding.
  std::int64_t read_by(std::int64_t t, std::int64_t k) const {
    const std::int64_t s = t * stride + k * dilation - front;
    return s < in ? std::max<std::int64_t>(s, -1) : -1;
  }
  /// The position of y whose tap k reads position s of x; -1 if there is none.
  std::int64_t reader_of(std::int64_t s, std::int64_t k) const {
    const std::int64_t t = s + front - k * dilation;
    return t >= 0 && t % stride == 0 && t / stride < out ? t / stride : -1;
  }
};

/// Calls f(row, other, k) for the rows of y and each tap k, in order, where `other` is the row of x that is read (by
/// &Taps::read_by), or for the rows of x with their readers in y (&Taps::reader_of); -1 is none. Rows are cut among the
/// threads.
template <auto kPartner>
void for_each_tap(const Taps& taps, std::int64_t width, auto f) {
  if (width == 0) return;  // there may be 2^59 rows
  constexpr bool kOfY = kPartner == &Taps::read_by;
  const std::int64_t positions = kOfY ? taps.out : taps.in, partners = kOfY ? taps.in : taps.out;
  const Rows rows(taps.batch * positions, width);
  parallel_for(rows.count, rows.block, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t k = 0; k < taps.count; ++k) {
        const std::int64_t other = (taps.*kPartner)(row % positions, k);
        f(row, other < 0 ? other : row / positions * partners + other, k);
      }
  });
}

// Depthwise: y[t] = sum over k of w[k] x[s], dx[s] = sum over k of w[k] dy[t], dw[k] = sum over t of dy[t] x[s], where
// tap k of t reads s. The weight lies as [K, C], so that loops over channels are vectors.

/// `out + w[k] * in` for every tap.
template <auto kPartner>
Tensor add_taps(const Taps& taps, const Tensor& in, const Tensor& w, Tensor out) {
  const std::int64_t channels = in.size(2);
  dispatch_float("conv1d", in.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *from = in.data<T>(), *weight = w.data<T>();
    T* to = out.mutable_data<T>();
    for_each_tap<kPartner>(taps, channels, [=](std::int64_t row, std::int64_t other, std::int64_t k) {
      if (other < 0) return;
      const T *x = from + other * channels, *tap = weight + k * channels;
      T* y = to + row * channels;
      for (std::int64_t c = 0; c < channels; ++c) y[c] += tap[c] * x[c];
    });
  });
  return out;
}

/// Sums for each block of rows, added in the order of the blocks. -> [K, C]
Tensor depthwise_dw(const Taps& taps, const Tensor& dy, const Tensor& x) {
  const std::int64_t channels = x.size(2);
  const Rows rows(taps.batch * taps.out, channels);
  Tensor sums = zeros({channels == 0 ? 0 : rows.blocks(), taps.count, channels}, x.dtype());
  dispatch_float("conv1d", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T *cotangents = dy.data<T>(), *from = x.data<T>();
    T* to = sums.mutable_data<T>();
    for_each_tap<&Taps::read_by>(taps, channels, [=](std::int64_t row, std::int64_t other, std::int64_t k) {
      if (other < 0) return;
      const T *dy = cotangents + row * channels, *x = from + other * channels;
      T* dw = to + (row / rows.block * taps.count + k) * channels;
      for (std::int64_t c = 0; c < channels; ++c) dw[c] += dy[c] * x[c];
    });
  });
  return reduce_sum(sums, {0});
}

// Dense: y = columns(x) w and its two products back, for each group of channels. The weight lies as [G, K C/G, O/G].

/// The taps of every position one after the other, zeros for padding. x [B, T, C] -> [G, B U, K C/G]
Tensor columns(const Taps& taps, const Tensor& x) {
  const std::int64_t channels = x.size(2), width = channels / taps.groups, rows = taps.batch * taps.out;
  Tensor y({taps.groups, rows, taps.count * width}, x.dtype());
  dispatch_float("conv1d", x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = x.data<T>();
    T* to = y.mutable_data<T>();
    for_each_tap<&Taps::read_by>(taps, channels, [=](std::int64_t row, std::int64_t other, std::int64_t k) {
      for (std::int64_t g = 0; g < taps.groups; ++g) {
        T* y = to + ((g * rows + row) * taps.count + k) * width;
        if (other < 0)
          std::fill_n(y, width, T{0});
        else
          std::copy_n(from + other * channels + g * width, width, y);
      }
    });
  });
  return y;
}

/// The vjp of columns: each position of x has the sum over the taps that read it. [G, B U, K C/G] -> [B, T, C]
Tensor columns_vjp(const Taps& taps, const Tensor& dcolumns, const Shape& x) {
  const std::int64_t channels = x[2], width = channels / taps.groups, rows = taps.batch * taps.out;
  Tensor dx = zeros(x, dcolumns.dtype());
  dispatch_float("conv1d", dx.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = dcolumns.data<T>();
    T* to = dx.mutable_data<T>();
    for_each_tap<&Taps::reader_of>(taps, channels, [=](std::int64_t row, std::int64_t other, std::int64_t k) {
      for (std::int64_t g = 0; other >= 0 && g < taps.groups; ++g) {
        const T* dy = from + ((g * rows + other) * taps.count + k) * width;
        T* dx = to + row * channels + g * width;
        for (std::int64_t c = 0; c < width; ++c) dx[c] += dy[c];
      }
    });
  });
  return dx;
}

/// [B, U, O] -> [G, B U, O/G]
Tensor by_group(const Tensor& y, std::int64_t groups) {
  return y.reshape({y.size(0) * y.size(1), groups, y.size(2) / groups}).permute({1, 0, 2});
}

/// weight [O, C/G, K] -> [G, K C/G, O/G]
Tensor by_group_and_tap(const Tensor& weight, std::int64_t groups) {
  const std::int64_t out = weight.size(0) / groups, in = weight.size(1), count = weight.size(2);
  return weight.reshape({groups, out, in, count}).permute({0, 3, 2, 1}).reshape({groups, count * in, out});
}

/// The inverse.
Tensor as_weight(const Tensor& w, const Shape& weight) {
  const std::int64_t groups = w.size(0);
  return w.reshape({groups, weight[2], weight[1], weight[0] / groups}).permute({0, 3, 2, 1}).reshape(weight);
}

struct Convolution {
  Taps taps;
  Shape y;
  bool depthwise;

  Convolution(const Shape& x, const Shape& weight, const Conv1dSettings& settings);

  Tensor forward(const Tensor& x, const Tensor& weight, const Tensor& bias) const {
    const Tensor start = (bias.defined() ? bias : zeros({weight.size(0)}, x.dtype())).broadcast_to(y);
    if (depthwise) return add_taps<&Taps::read_by>(taps, x, taps_of(weight), start.clone());
    Tensor sums = by_group(start, taps.groups).clone();
    accumulate_product(columns(taps, x), by_group_and_tap(weight, taps.groups), sums, "conv1d");
    return sums.permute({1, 0, 2}).reshape(y);
  }

  Tensor vjp_x(const Tensor& dy, const Tensor& weight, const Shape& x) const {
    if (depthwise) return add_taps<&Taps::reader_of>(taps, dy, taps_of(weight), zeros(x, dy.dtype()));
    const Tensor w = by_group_and_tap(weight, taps.groups);
    return columns_vjp(taps, matrix_product(by_group(dy, taps.groups), w.transpose(), "conv1d"), x);
  }

  Tensor vjp_weight(const Tensor& dy, const Tensor& x, const Shape& weight) const {
    if (depthwise) return depthwise_dw(taps, dy, x).transpose().reshape(weight);
    return as_weight(matrix_product(columns(taps, x).transpose(), by_group(dy, taps.groups), "conv1d"), weight);
  }

  /// [C, 1, K] -> [K, C]
  static Tensor taps_of(const Tensor& weight) { return weight.squeeze(1).transpose().contiguous(); }
};

void check_settings(const Conv1dSettings& settings) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 31;  // so that no position overflows
  const auto check_range = [](const char* name, std::int64_t value, std::int64_t least) {
    check_value(least <= value && value < kLimit, "conv1d: {} must lie in [{}, 2^31) but is {}", name, least, value);
  };
  check_range("stride", settings.stride, 1);
  check_range("dilation", settings.dilation, 1);
  check_range("groups", settings.groups, 1);
  check_range("padding", settings.padding, 0);
  check_value(!settings.causal || settings.padding == 0, "conv1d: causal takes no other padding but it is {}",
              settings.padding);
}

Convolution::Convolution(const Shape& x, const Shape& weight, const Conv1dSettings& settings) {
  check_settings(settings);
  check_shape(x.rank() == 3, "conv1d: x must have shape [B, T, C] but has {}", x);
  check_shape(weight.rank() == 3 && 1 <= weight[2] && weight[2] < std::int64_t{1} << 31,
              "conv1d: weight must have shape [out, in / groups, K] with at least one tap but has {}", weight);
  check_value(x[2] % settings.groups == 0 && weight[0] % settings.groups == 0,
              "conv1d: {} groups must divide the {} channels of x and the {} outputs", settings.groups, x[2],
              weight[0]);
  check_shape(weight[1] == x[2] / settings.groups,
              "conv1d: weight must have shape [out, {}, K] to match the {} channels of x in {} groups but has {}",
              x[2] / settings.groups, x[2], settings.groups, weight);
  const std::int64_t reach = settings.dilation * (weight[2] - 1);
  const std::int64_t padded = x[1] + (settings.causal ? reach : 2 * settings.padding);
  check_shape(reach < padded || x[1] == 0, "conv1d: {} taps {} apart reach over more than the {} positions of x",
              weight[2], settings.dilation, padded);
  taps = {x[0],
          x[1],
          padded > reach ? (padded - reach - 1) / settings.stride + 1 : 0,
          weight[2],
          settings.stride,
          settings.dilation,
          settings.causal ? reach : settings.padding,
          settings.groups};
  y = Shape(std::array{x[0], taps.out, weight[0]}, "conv1d");
  depthwise = weight[1] == 1 && weight[0] == x[2];
}

Var composed(const Var& x, const Var& weight, const Var& bias, const Convolution& c) {
  const auto& [batch, in, out, count, stride, dilation, front, groups] = c.taps;
  Tensor read({out * count}, DType::i32);
  for (std::int64_t i = 0; i < out * count; ++i)
    read.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(i / count * stride + i % count * dilation);
  const std::int64_t end = (out - 1) * stride + (count - 1) * dilation + 1;
  const Var padded = pad(x, 1, front, std::max<std::int64_t>(0, end - front - in));
  const Var taps = reshape(index_select(padded, 1, read), {batch, out, count, groups, weight.size(1)});
  const Var w = reshape(weight, {groups, weight.size(0) / groups, weight.size(1), count});
  const Var y = reshape(einsum("bukgc,gock->bugo", taps, w), c.y);
  return bias.value().defined() ? y + bias : y;
}

}  // namespace

Var conv1d(const Var& x, const Var& weight, const Var& bias, const Conv1dSettings& settings) {
  if (settings.channels == Channels::first) {
    check_shape(x.rank() == 3, "conv1d: x must have shape [B, C, T] but has {}", x.shape());
    Conv1dSettings last = settings;
    last.channels = Channels::last;
    return transpose(conv1d(transpose(x), weight, bias, last));
  }
  if (x.dtype() == DType::bf16)
    return detail::in_f32([&](const auto&... wide) { return conv1d(wide..., settings); }, x, weight, bias);
  std::vector<Var> inputs{x, weight};
  if (bias.value().defined()) {
    check_same_dtype("conv1d", weight.value(), bias.value());
    check_shape(weight.rank() == 3, "conv1d: weight must have shape [out, in / groups, K] but has {}", weight.shape());
    check_shape(bias.shape() == Shape{weight.size(0)},
                "conv1d: bias must have shape [{}] to match weight {} but has {}", weight.size(0), weight.shape(),
                bias.shape());
    inputs.push_back(bias);
  }
  check_floating("conv1d", x.dtype());
  check_same_dtype("conv1d", x.value(), weight.value());
  const Convolution convolution(x.shape(), weight.shape(), settings);
  if (Composed::active()) return composed(x, weight, bias, convolution);
  const Tensor in = x.value().contiguous(), w = weight.value().contiguous();
  return record("conv1d", convolution.forward(in, w, bias.value()), inputs,
                [convolution, x = in, w, biased = inputs.size() == 3](const Tensor& dy_in, const Needs& needs) {
                  const Tensor dy = dy_in.contiguous();
                  std::vector<Tensor> cotangents{needs[0] ? convolution.vjp_x(dy, w, x.shape()) : Tensor(),
                                                 needs[1] ? convolution.vjp_weight(dy, x, w.shape()) : Tensor()};
                  if (biased) cotangents.push_back(needs[2] ? reduce_sum(dy, {0, 1}) : Tensor());
                  return cotangents;
                });
}

}  // namespace braid
