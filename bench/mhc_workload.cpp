#include <bench/mhc_workload.h>

#include <algorithm>
#include <cmath>

#include <bench/machine.h>
#include <braid/autograd/composed.h>
#include <braid/core/parallel.h>
#include <braid/core/random.h>
#include <fmt/format.h>

namespace braid::bench {
namespace {

/// While one is alive, this thread's operations run in a form.
struct InForm {
  std::optional<Composed> scope;

  explicit InForm(Form form) {
    if (form == Form::composed) scope.emplace(Composed::Ops::connections);
  }
};

constexpr std::int64_t kCallsInFlight = 8, kLargeCall = 1024;  // tokens

std::int64_t bytes_of(const Shape& shape) { return 4 * shape.numel(); }

/// Enough buffers that inputs and outputs together exceed all caches.
std::int64_t ring_size(const MHCOperation& operation, std::int64_t calls) {
  std::int64_t bytes = bytes_of(operation.output);
  for (const Shape& shape : operation.inputs) bytes += bytes_of(shape);
  return std::max(2 * calls, machine().cache_bytes / bytes + 1);
}

/// The largest difference, relative to the largest |expected| or 1.
double error(const Tensor& actual, const Tensor& expected) {
  const Tensor a = actual.contiguous(), b = expected.contiguous();
  const float *x = a.data<float>(), *y = b.data<float>();
  float difference = 0, largest = 1;
  for (std::int64_t i = 0; i < a.numel(); ++i) {
    if (!(std::abs(x[i] - y[i]) <= difference)) difference = std::abs(x[i] - y[i]);  // NaN counts
    largest = std::max(largest, std::abs(y[i]));
  }
  return static_cast<double>(difference / largest);
}

}  // namespace

Workload::Workload(const MHCOperation& operation, Mode mode) : operation_(operation) {
  calls_ = mode == Mode::latency || operation.output[0] >= kLargeCall ? 1 : kCallsInFlight;
  Rng rng(1);
  Tensors inputs;
  for (const Shape& shape : operation.inputs) inputs.push_back(randn(shape, rng));
  const Tensor dy = randn(operation.output, rng);
  ring_.resize(static_cast<std::size_t>(mode == Mode::latency ? 1 : ring_size(operation, calls_)));
  for (Buffers& buffers : ring_) {
    for (const Tensor& input : inputs) buffers.inputs.push_back(input.clone());
    buffers.dy = dy.clone();
  }
}

std::string Workload::difference() const {
  const Buffers& buffers = ring_.front();
  const auto evaluate = [&](Form form) {
    const InForm scope(form);
    return operation_.forward_backward(buffers.inputs, buffers.dy);
  };
  const Tensors fused = evaluate(Form::fused), composed = evaluate(Form::composed);
  for (std::size_t i = 0; i < composed.size(); ++i)
    if (const double e = error(fused[i], composed[i]); !(e <= 1e-4))
      return formatted("the fused form differs from the composed one by {:.1e} in {}", e,
                       i == 0 ? "its value" : fmt::format("gradient {}", i - 1));
  if (const double e = error(operation_.forward(buffers.inputs), composed[0]); !(e <= 1e-4))
    return formatted("the fused form differs from the composed one by {:.1e} without a tape", e);
  return "";
}

void Workload::warm_up(Pass pass) {
  if (warm_ == pass) return;
  for (std::size_t done = 0; done < ring_.size(); done += static_cast<std::size_t>(calls_)) run(Form::fused, pass);
  warm_ = pass;
}

void Workload::run(Form form, Pass pass) {
  const auto call = [&](std::int64_t index) {
    const InForm scope(form);
    Buffers& buffers = ring_[(next_ + static_cast<std::size_t>(index)) % ring_.size()];
    buffers.results = pass == Pass::forward ? Tensors{operation_.forward(buffers.inputs)}
                                            : operation_.forward_backward(buffers.inputs, buffers.dy);
  };
  if (calls_ == 1)
    call(0);
  else
    parallel_for(calls_, 1, [&](std::int64_t index, std::int64_t) { call(index); });
  next_ = (next_ + static_cast<std::size_t>(calls_)) % ring_.size();
}

}  // namespace braid::bench
