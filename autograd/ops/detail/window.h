#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include <braid/autograd/kernels/rows.h>
#include <braid/autograd/ops/window_settings.h>
#include <braid/autograd/tape.h>

namespace braid::detail {

/// Throws ValueError naming `op` unless a setting lies in [least, 2^31), so that no position overflows.
void check_setting(const char* op, const char* name, std::int64_t value, std::int64_t least);

/// The same settings for the channels last.
auto with_channels_last(auto settings) {
  settings.channels = Channels::last;
  return settings;
}

/// Which way a window is looked through.
enum class Way {
  reads,    ///< from its stops to the positions that they read
  readers,  ///< from the positions to the stops that read them
};

/// Indices first, first + step, .. that meet the same taps.
struct AxisPart {
  std::int64_t first, step, count;
  std::vector<std::int64_t> taps;
};

/// One axis of a window that slides over `in` positions and stops `out` times: tap k of stop t reads position
/// `t stride + k dilation - front`, which is padding outside [0, in).
struct WindowAxis {
  std::int64_t in = 1, out = 1, taps = 1, stride = 1, dilation = 1, front = 0;

  WindowAxis() = default;
  /// Throws ValueError naming `op` for a stride or dilation out of range, ShapeError for taps that reach over more
  /// positions than there are with the padding in front and at the back.
  WindowAxis(const char* op, std::int64_t in, std::int64_t taps, std::int64_t stride, std::int64_t dilation,
             std::int64_t front, std::int64_t back);

  std::int64_t positions(Way way) const { return way == Way::reads ? out : in; }
  std::int64_t partners(Way way) const { return way == Way::reads ? in : out; }
  /// The position that tap k of stop `index` reads, or the stop whose tap k reads position `index`, which is in a part
  /// that meets k; -1 if there is none.
  std::int64_t partner(Way way, std::int64_t index, std::int64_t k) const {
    const std::int64_t other =
        way == Way::reads ? index * stride + k * dilation - front : (index + front - k * dilation) / stride;
    return other < partners(way) ? std::max<std::int64_t>(other, -1) : -1;
  }
  /// All indices. Readers that a stride leaves without a tap are in no part.
  std::vector<AxisPart> parts(Way way) const;
};

/// A window over the rows of x [batch, h.in, w.in, C], one for each of [batch, h.out, w.out].
struct Window {
  std::int64_t batch;
  WindowAxis h, w;

  std::int64_t taps() const { return h.taps * w.taps; }
  std::int64_t rows(Way way) const { return batch * h.positions(way) * w.positions(way); }
};

/// The window over pictures [B, H, W, C]. Throws as unfold() does, naming `op`.
Window window_over(const char* op, const Shape& x, Size2d size, const WindowSettings& settings);

/// x [B, H, W, C] -> [B U V, taps C]
Var unfold(const Var& x, const Window& window);

/// The convolution of both conv1d and conv2d, recorded as `op`: x [B, .., C], whose positions `window` covers, weight
/// [out, C / groups, ..], bias [out] or undefined -> y. Throws ShapeError, DTypeError or ValueError naming `op` when
/// the weight does not fit x and the groups, bias does not fit the weight or dtypes do not fit.
Var convolution(const char* op, const Var& x, const Var& weight, const Var& bias, const Window& window,
                std::int64_t groups);

/// The rows of a window that meet the same taps.
struct WindowPart {
  const Window& window;
  Way way;
  const AxisPart &h, &w;

  std::int64_t rows() const { return window.batch * h.count * w.count; }
  std::int64_t taps() const { return static_cast<std::int64_t>(h.taps.size() * w.taps.size()); }

  /// Calls f(row, b, u, v) for its rows [begin, end): the number of a row in the whole, and its position there.
  void for_each_row(std::int64_t begin, std::int64_t end, auto f) const {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t b = r / (h.count * w.count), u = h.first + r / w.count % h.count * h.step;
      const std::int64_t v = w.first + r % w.count * w.step;
      f((b * window.h.positions(way) + u) * window.w.positions(way) + v, b, u, v);
    }
  }

  /// Calls f(row, other, k) for its rows [begin, end) and, in order, each tap k; `other` is the partner's row in the
  /// whole, -1 for padding.
  void for_each_tap(std::int64_t begin, std::int64_t end, auto f) const {
    for_each_row(begin, end, [&](std::int64_t row, std::int64_t b, std::int64_t u, std::int64_t v) {
      for (const std::int64_t i : h.taps) {
        const std::int64_t s = window.h.partner(way, u, i), line = b * window.h.partners(way) + s;
        for (const std::int64_t j : w.taps) {
          const std::int64_t t = window.w.partner(way, v, j);
          f(row, s < 0 || t < 0 ? -1 : line * window.w.partners(way) + t, i * window.w.taps + j);
        }
      }
    });
  }
};

/// Calls f(part) for each part in turn.
void for_each_part(const Window& window, Way way, auto f) {
  for (const AxisPart& h : window.h.parts(way))
    for (const AxisPart& w : window.w.parts(way)) f(WindowPart{window, way, h, w});
}

/// for_each_tap over all rows, of `width` elements each, cut among the threads.
void for_each_tap(const Window& window, Way way, std::int64_t width, auto f) {
  if (width == 0) return;  // there may be 2^59 rows
  for_each_part(window, way, [&](const WindowPart& part) {
    const kernels::Rows rows(part.rows(), width);
    parallel_for(rows.count, rows.block,
                 [&](std::int64_t begin, std::int64_t end) { part.for_each_tap(begin, end, f); });
  });
}

}  // namespace braid::detail
