#include <tests/golden/bf16.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>

#include <braid/autograd/tape.h>
#include <braid/core/random.h>

namespace braid::golden {
namespace {

constexpr double kRounding = 0x1p-8;
constexpr int kRuns = 32;

using Results = nn::NamedTensors;

/// An op, or a variable, and what it stored.
struct Stored {
  std::string op;
  std::vector<DType> dtypes;
};

/// What a run stores in which dtype. A cast is not an op of its own: it stores what it casts.
class Notes : public Probe {
 public:
  void recorded(const RecordedOp& op, std::span<const Var>, std::vector<Tensor>& outputs) override {
    if (op.name == std::string_view("cast") && op.inputs[0]) {
      const auto [at, output] = values_.at(*op.inputs[0]);
      values_[op.first_output] = {at, output};
      if (outputs[0].dtype() == DType::bf16) stored_[at].dtypes[output] = DType::bf16;
      return;
    }
    Stored stored{op.inputs.empty() ? "" : op.name, {}};
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      values_[op.first_output + static_cast<ValueId>(i)] = {stored_.size(), i};
      stored.dtypes.push_back(outputs[i].dtype());
    }
    stored_.push_back(std::move(stored));
  }

  const std::vector<Stored>& stored() const { return stored_; }

 private:
  struct Place {
    std::size_t at, output;
  };
  std::map<ValueId, Place> values_;
  std::vector<Stored> stored_;
};

/// Moves what the noted run stored in bf16 by 2^-8 of itself.
class Moves : public Probe {
 public:
  Moves(const std::vector<Stored>& noted, Rng& rng) : noted_(noted), rng_(rng) {}

  void recorded(const RecordedOp& op, std::span<const Var>, std::vector<Tensor>& outputs) override {
    const std::string name = op.inputs.empty() ? "" : op.name;
    check<Error>(next_ < noted_.size() && noted_[next_].op == name, "f64 computes '{}' where bf16 does not", name);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      is_bf16_.push_back(noted_[next_].dtypes.at(i) == DType::bf16);
      if (!op.inputs.empty() && is_bf16_.back()) move(outputs[i]);
    }
    ++next_;
  }
  /// Whether f64 has computed all ops that bf16 did.
  bool done() const { return next_ == noted_.size(); }

  void propagates(const RecordedOp& op, std::span<Tensor> dys) override {
    for (std::size_t i = 0; i < dys.size(); ++i)
      if (is_bf16_.at(op.first_output + i)) move(dys[i]);
  }
  void propagated(const RecordedOp& op, std::vector<Tensor>& dxs) override {
    for (std::size_t i = 0; i < dxs.size(); ++i) {
      const bool deferred = op.deferral && op.deferral->input == i;  // what it was given
      if (op.inputs[i] && is_bf16_.at(*op.inputs[i]) && !deferred) move(dxs[i]);
    }
  }

 private:
  void move(Tensor& x) {
    if (!x.defined() || x.dtype() != DType::f64) return;
    std::vector<double> values = x.to_vector<double>();
    for (double& v : values) v *= rng_.uniform() < 0.5 ? 1 - kRounding : 1 + kRounding;
    x = Tensor::of<double>(x.shape(), std::span<const double>(values));
  }

  const std::vector<Stored>& noted_;
  Rng& rng_;
  std::size_t next_ = 0;
  std::vector<bool> is_bf16_;  // by ValueId
};

/// The case with the numbers that bf16 has of its inputs and cotangents.
RecordedCase rounded(RecordedCase golden, InBF16 which) {
  for (auto& [key, tensor] : golden.tensors) {
    const bool flows = key.starts_with("in.") || key.starts_with("cotangent");
    if (tensor.dtype() == DType::i32 || !(flows || key.starts_with("param."))) continue;
    tensor = tensor.to(flows || which == InBF16::everything ? DType::bf16 : DType::f32);
  }
  return golden;
}

/// Outputs and gradients. The cotangents are those of the case, in the dtype of what they belong to.
Results run(const RecordedCase& rounded, const Path& path, DType flow, Probe* probe) {
  Tape tape(probe);
  const CaseInputs inputs(rounded, tape);
  Results results;
  std::vector<Var> ys;
  std::vector<Tensor> dys;
  for (const auto& [name, y] : path.call(rounded, inputs, flow)) {
    results["out." + name] = y.value();
    const auto one = rounded.tensors.find("cotangent." + name), only = rounded.tensors.find("cotangent");
    const auto found = one != rounded.tensors.end() ? one : name == "y" ? only : rounded.tensors.end();
    if (found == rounded.tensors.end()) continue;
    ys.push_back(y);
    dys.push_back(found->second.to(y.dtype()));
  }
  tape.backward(ys, dys);
  for (const auto& [name, input] : inputs.all())
    if (input.requires_grad()) results["grad." + name] = tape.gradient(input);
  return results;
}

/// The largest difference of two elements, NaN if one is.
double distance(const Tensor& a, const Tensor& b) {
  check_shape(a.shape() == b.shape(), "bf16 has shape {} but f64 {}", a.shape(), b.shape());
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) most = nn::worse(most, std::abs(x[i] - y[i]));
  return most;
}

}  // namespace

nn::Verification check_in_bf16(const RecordedCase& golden, const Path& path, double f32) {
  const RecordedCase narrow = rounded(golden, path.in_bf16), wide = nn::to_dtype(narrow, DType::f64);
  Notes notes;
  const Results got = run(narrow, path, DType::bf16, &notes), exact = run(wide, path, DType::f64, nullptr);
  Rng rng(18);
  std::map<std::string, double> farthest;
  for (int i = 0; i < kRuns; ++i) {
    Moves moves(notes.stored(), rng);
    for (const auto& [key, moved] : run(wide, path, DType::f64, &moves))
      farthest[key] = std::max(farthest[key], distance(moved, exact.at(key)));
    check<Error>(moves.done(), "bf16 computes ops that f64 does not");
  }
  nn::Verification verification{.tolerance = 1};
  for (const auto& [key, value] : got) {
    const double size = largest(exact.at(key)), own = value.dtype() == DType::bf16 ? kRounding * size : 0;
    const double bound = std::max(farthest[key] + own, f32 * std::max(1.0, size));
    const double error = distance(value, exact.at(key)), share = error / bound;
    verification.table.push_back({key, share, share <= 1});
    verification.worst = nn::worse(verification.worst, share);
    if (!(share <= 1) && verification.message.empty())
      verification.message = fmt::format("{} is off by {:.1e}, more than {:.1e}", key, error, bound);
  }
  return verification;
}

}  // namespace braid::golden
