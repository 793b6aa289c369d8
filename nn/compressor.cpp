#include <braid/nn/compressor.h>

#include <cmath>
#include <utility>
#include <vector>

#include <braid/autograd/ops.h>
#include <braid/core/batch_invariant.h>
#include <braid/nn/init.h>

namespace braid::nn {
namespace {

constexpr double kHidden = -0x1p126;  // finite, for CheckFinite; its weight is 0

/// The windows [B, w, rate, 2 D] that entries read: the first half of each channel of the window before, the other half
/// of their own. Without a window before the first, `absent` stands in its place.
Var overlapped(const Var& windows, bool has_previous, double absent) {
  const std::int64_t size = windows.size(-1) / 2, count = windows.size(1);
  Var before = slice(slice(windows, -1, 0, size), 1, 0, count - 1), own = slice(windows, -1, size, 2 * size);
  if (has_previous)
    own = slice(own, 1, 1, count);
  else
    before = concat({full(before.shape().with(1, 1), absent, before.dtype()), before}, 1);
  return concat({before, own}, 2);
}

/// The entries from number `first` on, by rows that begin there or, if they overlap, one window before.
Var entries(const Compressor& c, const Var& rows, const Var& gates, std::int64_t first, const RotaryTurns& turns) {
  const bool has_previous = c.overlapping && first > 0;
  const auto windows = [&](const Var& x) { return reshape(x, {x.size(0), x.size(1) / c.rate, c.rate, x.size(-1)}); };
  Var values = cast(windows(rows), c.position_bias.dtype());
  Var scores = cast(windows(gates), c.position_bias.dtype()) + c.position_bias;
  if (c.overlapping) {
    values = overlapped(values, has_previous, 0);
    scores = overlapped(scores, has_previous, kHidden);
  }
  const Var mean = cast(sum(values * softmax(scores, 2), {2}), rows.dtype());
  RotaryTurns by_window = turns;
  for (double& frequency : by_window.frequencies) frequency *= static_cast<double>(c.rate);
  return rotary_embedding(reshape(c.norm(mean), {mean.size(0), mean.size(1), 1, mean.size(2)}), by_window, first);
}

using Score = std::pair<double, std::int64_t>;  // and the entry that has it

/// Moves the `top` largest scores to the front, NaN before all. Among equal ones, which are zeros of few heads, the
/// order of PyTorch's topk depends on how many there are; in a BatchInvariant scope the first entries win.
void keep_largest(std::vector<Score>& scores, std::int64_t top) {
  const bool first_wins = BatchInvariant::active();
  const auto larger = [&](const Score& a, const Score& b) {
    if (first_wins && a.first == b.first) return a.second < b.second;
    return (std::isnan(a.first) && !std::isnan(b.first)) || a.first > b.first;
  };
  if (!first_wins && top * 64 <= std::ssize(scores))
    std::partial_sort(scores.begin(), scores.begin() + top, scores.end(), larger);
  else
    std::nth_element(scores.begin(), scores.begin() + top - 1, scores.end(), larger);
}

/// Of the entries for each query. [B, T, n] f64
Tensor scores(const Indexer& indexer, const Tensor& x, const Tensor& latent, const Tensor& entries,
              const RotaryTurns& turns, std::int64_t position) {
  const std::int64_t length = x.size(1), count = entries.size(1), size = indexer.keys.norm.weight.size(0);
  const std::int64_t heads = indexer.weights.weight.size(0);
  const DType dtype = compute_dtype(x.dtype());
  std::vector<Var> all;
  for (std::int64_t b = 0; b < x.size(0); ++b) {
    const auto own = [&](const Tensor& of_all) { return of_all.slice(0, b, b + 1); };
    const Var query = rotary_embedding(reshape(indexer.q(own(latent)), {1, length, heads, size}), turns, position);
    const Var found = relu(
        linear(reshape(cast(query, dtype), {length * heads, size}), own(entries).reshape({count, size}).to(dtype)));
    const Var by_head = reshape(cast(indexer.weights(own(x)), dtype), {length, heads, 1});
    all.push_back(sum(reshape(found, {length, heads, count}) * by_head, {1}));
  }
  return stack(all, 0).value().to(DType::f64);
}

}  // namespace

const CompressionSettings& checked(const char* module, const CompressionSettings& s) {
  check_value(s.rate >= 0 && s.index_top >= 0, "{}: rate and index_top must not be negative but are {} and {}", module,
              s.rate, s.index_top);
  check_value(s.index_top == 0 || s.index_heads >= 1, "{}: index_top needs index_heads of at least 1 but there are {}",
              module, s.index_heads);
  return s;
}

Compressor::Compressor(std::int64_t channels, std::int64_t size, const CompressionSettings& s, double norm_eps,
                       Rng& rng, DType dtype)
    : rate(s.rate),
      overlapping(s.overlapping),
      kv(channels, s.overlapping ? 2 * size : size, rng, {.bias = false, .dtype = dtype}),
      gate(channels, s.overlapping ? 2 * size : size, rng, {.bias = false, .dtype = dtype}),
      position_bias(init::constant({s.rate, s.overlapping ? 2 * size : size}, 0, dtype)),
      norm(size, {norm_eps, dtype}) {}

Var Compressor::operator()(const Var& x, const RotaryTurns& turns) const {
  const Var whole = slice(x, 1, 0, x.size(1) / rate * rate);
  if (whole.size(1) == 0) return zeros({x.size(0), 0, 1, norm.weight.size(0)}, x.dtype());
  return entries(*this, kv(whole), gate(whole), 0, turns);
}

Tensor Compressor::operator()(const Var& x, const RotaryTurns& turns, CompressionCache& cache, std::int64_t position,
                              std::int64_t window) const {
  const auto one_head = [](const Var& y) { return y.value().reshape({y.size(0), y.size(1), 1, y.size(2)}); };
  cache.rows.write(position, one_head(kv(x)), one_head(gate(x)), kept(window));
  const std::int64_t length = position + x.size(1), first = position / rate, last = length / rate;
  if (last == 0) return zeros({x.size(0), 0, 1, norm.weight.size(0)}, x.dtype());
  if (first < last) {
    const std::int64_t begin = (overlapping && first > 0 ? first - 1 : first) * rate - cache.rows.first();
    const auto rows = [&](const Tensor& all) { return all.slice(1, begin, last * rate - cache.rows.first()); };
    const Var made = entries(*this, rows(cache.rows.keys(length)), rows(cache.rows.values(length)), first, turns);
    cache.entries.write(first, made.value(), {});
  }
  return cache.entries.keys(last);
}

Indexer::Indexer(std::int64_t channels, std::int64_t query_rank, const CompressionSettings& s, double norm_eps,
                 Rng& rng, DType dtype)
    : keys(channels, s.index_size, s, norm_eps, rng, dtype),
      q(query_rank, s.index_heads * s.index_size, rng, {.bias = false, .dtype = dtype}),
      weights(channels, s.index_heads, rng, {.bias = false, .dtype = dtype}),
      top(s.index_top) {}

Indexer Indexer::constant() const {
  Indexer copy = *this;
  for_each_param(copy, [](const std::string&, Var& p) { p = detach(p); });
  return copy;
}

Tensor Indexer::operator()(const Tensor& x, const Tensor& latent, const Tensor& entries, const RotaryTurns& turns,
                           std::int64_t position) const {
  const std::int64_t batch = x.size(0), length = x.size(1), count = entries.size(1);
  const Tensor score = count > top ? scores(*this, x, latent, entries, turns, position) : Tensor();
  Tensor seen = zeros({batch, length, count}, DType::i32);
  std::vector<Score> order;
  for (std::int64_t row = 0; row < batch * length; ++row) {
    std::int32_t* sees = seen.mutable_data<std::int32_t>() + row * count;
    const std::int64_t closed = detail::closed_entries(position + row % length, keys.rate, count);
    if (closed <= top) {
      std::fill_n(sees, closed, 1);
      continue;
    }
    order.clear();
    for (std::int64_t i = 0; i < closed; ++i) order.emplace_back(score.data<double>()[row * count + i], i);
    while (!BatchInvariant::active() && std::ssize(order) < count) order.emplace_back(-INFINITY, count);
    keep_largest(order, top);
    for (std::int64_t i = 0; i < top; ++i)
      if (const std::int64_t entry = order[static_cast<std::size_t>(i)].second; entry < closed) sees[entry] = 1;
  }
  return seen;
}

}  // namespace braid::nn
