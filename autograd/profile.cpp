#include <braid/autograd/profile.h>

#include <algorithm>
#include <functional>
#include <ranges>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <braid/autograd/tape.h>
#include <braid/core/utf8.h>

namespace braid {
namespace {

double bytes(const Tensor& x) {
  return x.defined() ? static_cast<double>(x.numel()) * static_cast<double>(size_of(x.dtype())) : 0;
}

/// Multiplications and additions of the forward pass: twice as many backward.
double operations(std::string_view op, std::span<const Var> inputs, const Tensor& y) {
  const auto numel = static_cast<double>(y.numel());
  if (op == "linear" || op == "matmul") return 2 * numel * static_cast<double>(inputs[0].size(-1));
  if (op == "attention")  // a product for the scores and one for the values, of causal pairs of positions
    return 4 * numel * (static_cast<double>(inputs[1].size(1)) - static_cast<double>(inputs[0].size(1) - 1) / 2);
  return 0;
}

double seconds(const Profile::Row& row) { return row.forward_s + row.backward_s; }

std::string percent(double rate, double peak) {
  return rate > 0 && peak > 0 ? fmt::format("{:.0f} %", 100 * rate / peak) : "-";
}

}  // namespace

void Profile::recorded(const RecordedOp& op, std::span<const Var> inputs, std::vector<Tensor>& outputs) {
  if (inputs.empty()) return;  // a watched variable
  const auto shapes = inputs | std::views::transform([](const Var& x) { return x.shape(); });
  Cost cost{0, operations(op.name, inputs, outputs.front()), fmt::format("{}", fmt::join(shapes, " "))};
  for (const Var& input : inputs) cost.bytes += bytes(input.value());
  for (const Tensor& output : outputs) cost.bytes += bytes(output);
  costs_[op.index] = cost;
  add(op.name, "forward", std::move(cost), op.index);
}

void Profile::propagates(const RecordedOp& op, std::span<Tensor> dys) {
  for (const Tensor& dy : dys) costs_[op.index].bytes += bytes(dy);
}

void Profile::propagated(const RecordedOp& op, std::vector<Tensor>& dxs) {
  Cost cost = std::move(costs_.extract(op.index).mapped());
  for (const Tensor& dx : dxs) cost.bytes += bytes(dx);
  cost.operations *= 2;
  add(op.name, "backward", std::move(cost), op.index);
}

void Profile::start() {
  ++steps_;
  costs_.clear();
  last_ = Clock::now();
}

void Profile::lap(const std::string& name) { add(name, "step", {}); }

void Profile::add(const std::string& name, const char* category, Cost cost, std::size_t index) {
  const auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
  const Clock::time_point now = Clock::now();
  events_.push_back({name, category, seconds(last_ - begin_), seconds(now - last_), std::move(cost), index});
  last_ = now;
}

void Profile::Event::add_to(Row& row) const {
  const bool backward = std::string_view(category) == "backward";
  row.name = name;
  row.calls += backward ? 0 : 1;
  (backward ? row.backward_s : row.forward_s) += duration_s;
  row.bytes += cost.bytes;
  row.operations += cost.operations;
}

std::vector<Profile::Row> Profile::rows() const {
  std::map<std::string, Row> by_name;
  for (const Event& event : events_) event.add_to(by_name[event.name]);
  std::vector<Row> rows;
  for (auto& [name, row] : by_name) rows.push_back(std::move(row));
  std::ranges::stable_sort(rows, std::greater(), seconds);
  return rows;
}

std::map<std::size_t, Profile::Row> Profile::ops() const {
  std::map<std::size_t, Row> by_index;
  for (const Event& event : events_)
    if (std::string_view(event.category) != "step") event.add_to(by_index[event.index]);
  return by_index;
}

std::string Profile::table(const Peak& peak) const {
  const std::vector<Row> all = rows();
  const auto steps = static_cast<double>(std::max<std::int64_t>(steps_, 1));
  double total = 0;
  std::size_t width = 4;
  for (const Row& row : all) {
    total += seconds(row);
    width = std::max(width, row.name.size());
  }
  const auto ms = [&](double s) { return s > 0 ? fmt::format("{:.2f}", 1e3 * s / steps) : "-"; };
  const auto line = [&](const Row& row) {
    return fmt::format("{:<{}}  {:>5.0f}  {:>10}  {:>11}  {:>4.1f} %  {:>8}  {:>9}  {:>7}\n", row.name, width,
                       static_cast<double>(row.calls) / steps, ms(row.forward_s), ms(row.backward_s),
                       100 * seconds(row) / total, row.bytes > 0 ? fmt::format("{:.1f}", row.bytes / steps / 1e6) : "-",
                       percent(row.bytes / seconds(row), peak.bytes_per_s),
                       percent(row.operations / seconds(row), peak.operations_per_s));
  };
  std::string text =
      fmt::format("{:<{}}  calls  forward ms  backward ms   share        MB  bandwidth     peak\n", "op", width);
  for (const Row& row : all) text += line(row);
  return text + fmt::format("{:.2f} ms a step\n", 1e3 * total / steps);
}

std::string Profile::chrome_trace() const {
  const auto event = [](const Event& e) {
    return fmt::format(R"({{"name":{},"cat":"{}","ph":"X","ts":{},"dur":{},"pid":0,"tid":0,"args":)"
                       R"({{"inputs":{},"bytes":{},"operations":{}}}}})",
                       json_string(e.name), e.category, 1e6 * e.begin_s, 1e6 * e.duration_s, json_string(e.cost.shapes),
                       e.cost.bytes, e.cost.operations);
  };
  return fmt::format(R"({{"traceEvents":[{}],"displayTimeUnit":"ms"}})",
                     fmt::join(events_ | std::views::transform(event), ","));
}

}  // namespace braid
