#include <braid/mhc/streams/telemetry.h>

#include <algorithm>
#include <cmath>

#include <braid/core/products/matmul.h>
#include <braid/core/reduce.h>

namespace braid::mhc {
namespace {

struct LineSums {
  double gain;   // max |sum|
  double error;  // max |sum - 1|
};

/// The sums of the rows (axis -1) or columns (axis -2) of h [tokens, n, n], averaged over tokens.
LineSums line_sums(const Tensor& h, int axis) {
  const std::vector<double> sums = reduce_sum(h, {axis}).to_vector<double>();
  const auto n = static_cast<std::size_t>(h.size(-1));
  LineSums total{0, 0};
  for (std::size_t token = 0; token < sums.size(); token += n) {
    double gain = 0, error = 0;
    for (std::size_t i = token; i < token + n; ++i) {
      gain = std::max(gain, std::abs(sums[i]));
      error = std::max(error, std::abs(sums[i] - 1));
    }
    total.gain += gain;
    total.error += error;
  }
  const auto tokens = static_cast<double>(h.size(0));
  return {total.gain / tokens, total.error / tokens};
}

std::int64_t count_saturated(const Tensor& gates, double scale) {
  const std::vector<double> values = gates.to_vector<double>();
  return std::ranges::count_if(values, [&](double v) { return v < 0.01 * scale || v > 0.99 * scale; });
}

std::optional<double> saturation(const StreamMaps& maps) {
  const Tensor& pre = maps.h_pre.value();
  const Tensor& post = maps.h_post.value();
  if (!maps.gated || pre.numel() == 0) return std::nullopt;
  const std::int64_t saturated = count_saturated(pre, 1) + count_saturated(post, maps.post_magnitude);
  return static_cast<double>(saturated) / static_cast<double>(pre.numel() + post.numel());
}

/// The mean cosine, 0 with zeros, between streams of x [..., n, C]: |sum of units|^2 = units + n (n - 1) mean.
std::optional<double> similarity(const Tensor& x) {
  const std::int64_t n = x.size(-2), channels = x.size(-1);
  if (n < 2 || x.numel() == 0) return std::nullopt;
  const std::vector<double> values = x.to_vector<double>();
  double total = 0, units = 0;
  for (auto stream = values.begin(); stream != values.end();) {
    std::vector<double> sum(static_cast<std::size_t>(channels), 0.0);
    for (std::int64_t i = 0; i < n; ++i, stream += channels) {
      double square = 0;
      for (std::int64_t c = 0; c < channels; ++c) square += stream[c] * stream[c];
      const double scale = square > 0 ? 1 / std::sqrt(square) : 0;
      units += square > 0 ? 1 : 0;
      for (std::int64_t c = 0; c < channels; ++c) sum[static_cast<std::size_t>(c)] += stream[c] * scale;
    }
    for (const double s : sum) total += s * s;
  }
  const auto tokens = static_cast<double>(x.numel() / (n * channels)), count = static_cast<double>(n);
  return (total / tokens - units / tokens) / (count * (count - 1));
}

std::string cell(const std::optional<double>& value) { return value ? formatted("{:.4g}", *value) : "-"; }

}  // namespace

void Telemetry::record(const StreamMaps& maps, const Var& x) {
  const std::int64_t n = maps.h_res.size(-1);
  const Tensor h_res = maps.h_res.value().to(DType::f64).reshape({maps.h_res.numel() / (n * n), n, n});
  const LineSums rows = line_sums(h_res, -1), columns = line_sums(h_res, -2);
  const Shape streams = x.shape().with(-2, n);
  const bool begins = records_.empty() || records_.back().streams != streams;
  records_.push_back({.stats = {.forward_gain = rows.gain,
                                .backward_gain = columns.gain,
                                .row_error = rows.error,
                                .column_error = columns.error,
                                .saturation = saturation(maps),
                                .similarity = similarity(x.value()),
                                .begins_stage = begins},
                      .h_res = h_res,
                      .streams = streams});
}

std::vector<ConnectionStats> Telemetry::connections() const {
  std::vector<ConnectionStats> list;
  Tensor product;  // of the maps of a stage
  for (const auto& [stats, h_res, _] : records_) {
    product = stats.begins_stage ? h_res : matrix_product(h_res, product);
    list.push_back(stats);
    list.back().composed_forward_gain = line_sums(product, -1).gain;
  }
  product = {};
  for (std::size_t i = list.size(); i-- > 0;) {
    product = product.defined() ? matrix_product(product, records_[i].h_res) : records_[i].h_res;
    list[i].composed_backward_gain = line_sums(product, -2).gain;
    if (list[i].begins_stage) product = {};
  }
  return list;
}

std::string table(std::span<const ConnectionStats> connections) {
  if (connections.empty()) return "no connection was recorded\n";
  std::string text = fmt::format(
      "{:>10} {:>21} {:>21} {:>21} {:>10} {:>10}\n{:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "",
      "gain", "composed gain", "error", "", "", "connection", "forward", "backward", "forward", "backward", "row",
      "column", "saturated", "similarity");
  int index = 0;
  for (const ConnectionStats& s : connections)
    text += formatted("{}{:>10} {:>10.4g} {:>10.4g} {:>10.4g} {:>10.4g} {:>10.2g} {:>10.2g} {:>10} {:>10}\n",
                      s.begins_stage && &s != connections.data() ? "\n" : "", index++, s.forward_gain, s.backward_gain,
                      s.composed_forward_gain, s.composed_backward_gain, s.row_error, s.column_error,
                      cell(s.saturation), cell(s.similarity));
  return text;
}

}  // namespace braid::mhc
