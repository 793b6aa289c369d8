#include "step_record.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <braid/autograd/tape.h>
#include <braid/core/error.h>
#include <braid/core/files/checksum.h>
#include <braid/core/parallel.h>

namespace braid::apps {
namespace {

constexpr const char* kParameter = "parameter";

std::string_view bytes_of(const Tensor& contiguous) {
  return {reinterpret_cast<const char*>(contiguous.bytes()),
          static_cast<std::size_t>(contiguous.numel()) * size_of(contiguous.dtype())};
}

/// An element as the shortest text that gives its bits again; NaNs with theirs.
std::string element_text(const Tensor& x, std::size_t i) {
  return dispatch(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const auto value = static_cast<Compute<T>>(x.data<T>()[i]);
    std::uint64_t bits = 0;
    std::memcpy(&bits, x.data<T>() + i, sizeof(T));
    return value == value ? fmt::format("{}", value) : fmt::format("NaN (0x{:x})", bits);
  });
}

}  // namespace

std::string checksum_of(std::span<const Tensor> tensors) {
  constexpr std::size_t kChunk = std::size_t{1} << 20;  // enough for a thread, few enough to balance
  std::vector<Tensor> kept;
  std::vector<std::string_view> chunks;
  for (const Tensor& tensor : tensors) {
    kept.push_back(tensor.contiguous());
    const std::string_view bytes = bytes_of(kept.back());
    for (std::size_t at = 0; at < bytes.size(); at += kChunk) chunks.push_back(bytes.substr(at, kChunk));
  }
  std::vector<std::string> sums(chunks.size());
  parallel_for(static_cast<std::int64_t>(chunks.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) sums[i] = checksum(chunks[i]);
  });
  return checksum(fmt::format("{}", fmt::join(sums, "")));
}

nlohmann::ordered_json to_json(const StepEvent& e) {
  return {{"op", e.op},
          {"number", e.number},
          {"backward", e.backward},
          {"index", e.index},
          {"shape", std::vector<std::int64_t>(e.shape.begin(), e.shape.end())},
          {"checksum", e.checksum},
          {"name", e.name}};
}

StepEvent step_event(const std::string& what, const nlohmann::json& json) {
  try {
    const auto shape = json.at("shape").get<std::vector<std::int64_t>>();
    return {json.at("op").get<std::string>(),
            json.at("number").get<std::int64_t>(),
            json.at("backward").get<bool>(),
            json.at("index").get<std::size_t>(),
            Shape(std::span<const std::int64_t>(shape)),
            json.at("checksum").get<std::string>(),
            json.at("name").get<std::string>()};
  } catch (const nlohmann::json::exception& error) {
    throw FileError(fmt::format("{}: must be an event of a step: {}", what, error.what()));
  }
}

void StepRecord::recorded(const RecordedOp& op, std::span<const Var> inputs, std::vector<Tensor>& outputs) {
  if (op.index == 0) {  // another tape
    entries_.clear();
    parameters_.clear();
  }
  if (inputs.empty()) {
    const std::size_t i = parameters_.size();
    parameters_[op.first_output] = i < names_.size() ? names_[i] : "";
    entries_.push_back({static_cast<std::int64_t>(i) + 1, parameters_[op.first_output]});
  } else {
    const auto named = std::ranges::find_if(op.inputs, [&](const auto& id) { return id && parameters_.contains(*id); });
    entries_.push_back({++ops_, named == op.inputs.end() ? "" : parameters_[**named]});
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) add(op, false, i, outputs[i]);
}

void StepRecord::propagated(const RecordedOp& op, std::vector<Tensor>& dxs) {
  for (std::size_t i = 0; i < dxs.size(); ++i)
    if (dxs[i].defined()) add(op, true, i, dxs[i]);
}

void StepRecord::add(const RecordedOp& op, bool backward, std::size_t index, const Tensor& x) {
  if (keep_ == events_.size()) kept_ = x.clone();
  const Entry& entry = entries_[op.index];
  events_.push_back(
      {op.inputs.empty() ? kParameter : op.name, entry.number, backward, index, x.shape(), checksum(x), entry.name});
}

std::optional<std::size_t> first_difference(const std::vector<StepEvent>& a, const std::vector<StepEvent>& b) {
  const auto same = [](const StepEvent& x, const StepEvent& y) {
    return x.op == y.op && x.backward == y.backward && x.index == y.index && x.shape == y.shape &&
           x.checksum == y.checksum;
  };
  const auto [in_a, in_b] = std::ranges::mismatch(a, b, same);
  if (in_a == a.end() && in_b == b.end()) return std::nullopt;
  return static_cast<std::size_t>(in_a - a.begin());
}

std::string describe(const std::vector<StepEvent>& events, std::size_t index) {
  const StepEvent& e = events.at(index);
  if (e.op == kParameter) return fmt::format("parameter '{}' {}", e.name, e.shape);
  const auto last = std::ranges::max(events, {}, [](const StepEvent& x) { return x.op == kParameter ? 0 : x.number; });
  return fmt::format("op '{}' (#{} of {}{}), {} {} {}", e.op, e.number, last.number,
                     e.name.empty() ? "" : ", with " + e.name, e.backward ? "vjp, cotangent of input" : "output",
                     e.index, e.shape);
}

std::string describe_element(const Tensor& a, const Tensor& b) {
  check<Error>(a.shape() == b.shape() && a.dtype() == b.dtype(), "describe_element: {} {} against {} {}",
               name(a.dtype()), a.shape(), name(b.dtype()), b.shape());
  const Tensor x = a.contiguous(), y = b.contiguous();
  const std::size_t size = size_of(a.dtype());
  const std::string_view in_x = bytes_of(x), in_y = bytes_of(y);
  const auto at = static_cast<std::size_t>(std::ranges::mismatch(in_x, in_y).in1 - in_x.begin());
  check<Error>(at < in_x.size(), "describe_element: the tensors have the same bits");
  std::vector<std::int64_t> position(a.shape().rank());
  auto rest = static_cast<std::int64_t>(at / size);
  for (int axis = a.rank() - 1; axis >= 0; rest /= a.size(axis--)) position[axis] = rest % a.size(axis);
  return fmt::format("element [{}]: {} against {}", fmt::join(position, ", "), element_text(x, at / size),
                     element_text(y, at / size));
}

}  // namespace braid::apps
