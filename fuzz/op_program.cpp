// Random programs: bytes choose inputs, then ops on previous results, then the tape runs backward. Any op may throw an
// Error.
#include <algorithm>
#include <array>
#include <limits>

#include <braid/autograd/composed.h>
#include <braid/autograd/ops.h>
#include <braid/mhc/ops/attention_residual.h>
#include <braid/mhc/ops/expand_reduce.h>
#include <braid/mhc/ops/group_mix.h>
#include <braid/mhc/ops/projections.h>
#include <braid/mhc/ops/read_write.h>
#include <braid/mhc/ops/sinkhorn.h>
#include <braid/mhc/ops/weighted_sum.h>

#include "target.h"

namespace {

using namespace braid;

constexpr double kMostElements = 1024;

/// The largest number of elements that an op may make from a shape: a sum over an empty axis leaves the others.
double elements_to_come(const Shape& shape) {
  double elements = 1;
  for (const std::int64_t size : shape) elements *= static_cast<double>(std::max<std::int64_t>(size, 1));
  return elements;
}

class Program {
 public:
  explicit Program(fuzz::Bytes bytes) : bytes_(bytes) {}

  void run();

 private:
  using Op = Var (*)(Program&);
  static const std::vector<Op>& ops();

  const Var& x() { return values_[bytes_.byte() % values_.size()]; }
  std::vector<Var> two() { return {x(), x()}; }
  std::vector<Var> some() { return {x(), x(), x()}; }
  int axis() { return bytes_.in(-3, 3); }
  Axes axes() {
    Axes all;
    for (int count = bytes_.in(0, 3); count > 0; --count) all.push_back(axis());
    return all;
  }
  bool flag() { return bytes_.byte() % 2 == 1; }
  /// f() by fused ops, or in their composed forms.
  template <class F>
  Var in_some_form(F f) {
    if (flag()) return f();
    const Composed scope;
    return f();
  }
  std::int64_t position() {
    const int choice = bytes_.in(-4, 60);
    return choice < 60 ? choice % 7 : bytes_.bits<std::int64_t>();
  }
  DType dtype() { return std::array{DType::f32, DType::f64, DType::i32}[bytes_.byte() % 3]; }
  double number() {
    constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
    constexpr std::array kNumbers{0.0, 1.0, -1.0, 0.5, -3.0, 1e-5, 1e30, -1e300, kInf, -kInf, kNaN, 1e-310};
    const std::uint8_t choice = bytes_.byte();
    return choice < 200 ? kNumbers[choice % kNumbers.size()] : bytes_.bits<double>();
  }
  Reduction reduction() { return static_cast<Reduction>(bytes_.in(0, 3)); }
  CrossEntropySettings loss_settings() {
    return {reduction(), number(), flag() ? x().value() : Tensor(), bytes_.in(-2, 5)};
  }
  Channels channels() { return flag() ? Channels::first : Channels::last; }
  Conv1dSettings conv1d_settings() {
    return {bytes_.in(0, 3), bytes_.in(0, 3), bytes_.in(0, 3), bytes_.in(-1, 3), flag(), channels()};
  }
  Tensor ids() {
    Tensor t(bytes_.shape(), DType::i32);
    std::generate_n(t.mutable_data<std::int32_t>(), t.numel(), [&] { return bytes_.in(-2, 5); });
    return t;
  }
  Tensor input() {
    const Shape shape = bytes_.shape();
    if (flag()) return ids();
    Tensor t(shape, DType::f64);
    std::generate_n(t.mutable_data<double>(), t.numel(), [&] { return number(); });
    return t.to(flag() ? DType::f32 : DType::f64);
  }

  fuzz::Bytes bytes_;
  Tape tape_;
  std::vector<Var> values_, watched_;
};

const std::vector<Program::Op>& Program::ops() {
  using P = Program&;
  static const std::vector<Op> all{
      [](P p) { return p.x() + p.x(); },
      [](P p) { return p.x() - p.x(); },
      [](P p) { return p.x() * p.x(); },
      [](P p) { return p.x() / p.x(); },
      [](P p) { return p.x() * p.number() + p.number(); },
      [](P p) { return abs(p.x()); },
      [](P p) { return exp(p.x()); },
      [](P p) { return log(p.x()); },
      [](P p) { return sqrt(p.x()); },
      [](P p) { return rsqrt(p.x()); },
      [](P p) { return tanh(p.x()); },
      [](P p) { return sigmoid(p.x()); },
      [](P p) { return silu(p.x()); },
      [](P p) { return gelu(p.x()); },
      [](P p) { return gelu_erf(p.x()); },
      [](P p) { return relu(p.x()); },
      [](P p) { return pow(p.x(), p.number()); },
      [](P p) { return pow(p.x(), p.x()); },
      [](P p) { return clamp(p.x(), p.number(), p.number()); },
      [](P p) { return maximum(p.x(), p.x()); },
      [](P p) { return minimum(p.x(), p.number()); },
      [](P p) { return where(p.ids(), p.x(), p.x()); },
      [](P p) { return cast(p.x(), p.dtype()); },
      [](P p) { return sum(p.x(), p.axes(), p.flag()); },
      [](P p) { return mean(p.x(), p.axes(), p.flag()); },
      [](P p) { return max(p.x(), p.axes(), p.flag()); },
      [](P p) { return min(p.x(), p.axes(), p.flag()); },
      [](P p) { return logsumexp(p.x(), p.axes(), p.flag()); },
      [](P p) { return var(p.x(), p.axes(), p.flag(), p.number()); },
      [](P p) { return stddev(p.x(), p.axes(), p.flag(), p.number()); },
      [](P p) { return norm(p.x(), p.axes(), p.flag()); },
      [](P p) { return cumsum(p.x(), p.axis()); },
      [](P p) { return sort(p.x(), p.axis(), p.flag()).values; },
      [](P p) { return topk(p.x(), p.position(), p.axis()).values; },
      [](P p) { return softmax(p.x(), p.axes()); },
      [](P p) { return log_softmax(p.x(), p.axes()); },
      [](P p) { return matmul(p.x(), p.x()); },
      [](P p) { return linear(p.x(), p.x()); },
      [](P p) { return linear(p.x(), p.x(), p.x()); },
      [](P p) { return transpose(p.x(), p.axis(), p.axis()); },
      [](P p) { return permute(p.x(), p.axes()); },
      [](P p) { return slice(p.x(), p.axis(), p.position(), p.position()); },
      [](P p) { return select(p.x(), p.axis(), p.position()); },
      [](P p) {
        return reshape(p.x(), {p.position(), p.position()});
      },
      [](P p) {
        return broadcast_to(p.x(), {p.position(), p.position(), p.position()});
      },
      [](P p) { return expand_dims(p.x(), p.axis()); },
      [](P p) { return squeeze(p.x(), p.axis()); },
      [](P p) { return concat(p.some(), p.axis()); },
      [](P p) { return stack(p.some(), p.axis()); },
      [](P p) { return gather(p.x(), p.axis(), p.ids()); },
      [](P p) { return scatter_add(p.x(), p.axis(), p.ids(), p.x()); },
      [](P p) { return index_select(p.x(), p.axis(), p.ids()); },
      [](P p) { return embedding(p.x(), p.ids()); },
      [](P p) { return cross_entropy(p.x(), p.ids()); },
      [](P p) { return cross_entropy(p.x(), p.ids(), p.loss_settings()); },
      [](P p) { return cross_entropy(p.x(), p.x(), p.loss_settings()); },
      [](P p) { return binary_cross_entropy_with_logits(p.x(), p.x(), p.reduction(), p.x().value()); },
      [](P p) { return kl_divergence(p.x(), p.x(), p.reduction()); },
      [](P p) { return mse_loss(p.x(), p.x()); },
      [](P p) { return rms_norm(p.x(), p.x(), p.number()); },
      [](P p) { return layer_norm(p.x(), p.x(), p.x()); },
      [](P p) { return group_norm(p.x(), p.position(), p.number(), p.channels()); },
      [](P p) { return group_norm(p.x(), p.position(), p.x(), p.x(), p.number(), p.channels()); },
      [](P p) { return conv1d(p.x(), p.x(), p.conv1d_settings()); },
      [](P p) { return conv1d(p.x(), p.x(), p.x(), p.conv1d_settings()); },
      [](P p) { return einsum("...i,i...->...", p.two()); },
      [](P p) { return einsum("ij,jk,...k->i...", p.some()); },
      [](P p) {
        return attention(p.x(), p.x(), p.x(),
                         {.causal = p.flag(), .window = p.position(), .scale = p.number(), .mask = p.ids()});
      },
      [](P p) { return rotary_embedding(p.x(), p.number(), p.position()); },
      [](P p) {
        Rng rng(1);
        return dropout(p.x(), p.number(), rng);
      },
      [](P p) { return sin(p.x()); },
      [](P p) { return cos(p.x()); },
      [](P p) { return log1p(p.x()); },
      [](P p) { return expm1(p.x()); },
      [](P p) { return softplus(p.x()); },
      [](P p) { return Var(less(p.x(), p.x())); },
      [](P p) { return Var(sign(p.x())); },
      [](P p) { return Var(nonzero(p.x())); },
      [](P p) { return Var(argmax(p.x(), p.axis(), p.flag())); },
      [](P p) { return Var(one_hot(p.ids(), p.bytes_.in(-1, 9), p.dtype())); },
      [](P p) { return masked_fill(p.x(), p.ids(), p.number()); },
      [](P p) { return tril(p.x(), p.position()); },
      [](P p) { return triu(p.x(), p.position()); },
      [](P p) { return flip(p.x(), p.axes()); },
      [](P p) { return roll(p.x(), p.axis(), p.position()); },
      [](P p) { return pad(p.x(), p.axis(), p.bytes_.in(-1, 5), p.bytes_.in(-1, 5), p.number()); },
      [](P p) {
        return repeat(p.x(), {p.bytes_.in(-1, 3), p.bytes_.in(0, 3)});
      },
      [](P p) {
        return split(p.x(), p.axis(), {p.position(), p.position()}).back();
      },
      [](P p) { return chunk(p.x(), p.axis(), p.bytes_.in(-1, 5)).front(); },
      [](P p) { return slice(p.x(), p.axis(), p.position(), p.position(), p.position()); },
      [](P p) {
        return p.in_some_form([&] { return mhc::sinkhorn_knopp(p.x(), p.bytes_.in(0, 9), mhc::Marginal::rows); });
      },
      [](P p) { return mhc::simplex_softmax(p.x(), p.number()); },
      [](P p) { return mhc::identity_preserving(p.x(), p.number(), p.number()); },
      [](P p) { return p.in_some_form([&] { return mhc::doubly_stochastic(p.x(), p.number(), p.bytes_.in(0, 9)); }); },
      [](P p) { return mhc::simplex_projection(p.x()); },
      [](P p) { return mhc::weighted_sum(p.x(), p.x(), p.some()); },
      [](P p) { return p.in_some_form([&] { return mhc::attention_residual(p.x(), p.x(), p.some()); }); },
      [](P p) { return mhc::expand_streams(p.x(), p.bytes_.in(-1, 5)); },
      [](P p) { return mhc::reduce_streams(p.x()); },
      [](P p) { return p.in_some_form([&] { return mhc::mix_streams(p.x(), p.x()); }); },
      [](P p) { return mhc::scale_groups(p.x(), p.x()); },
      [](P p) { return mhc::mix_groups(p.x(), p.x(), p.x(), p.x()); },
  };
  return all;
}

void Program::run() {
  for (int inputs = bytes_.in(1, 4); inputs > 0; --inputs) {
    const Tensor value = input();
    values_.push_back(value);
    if (value.dtype() != DType::i32 && flag()) values_.back() = watched_.emplace_back(tape_.watch(value));
  }
  while (!bytes_.empty() && values_.size() < 32)
    fuzz::accept_or_refuse([&] {
      const Var y = ops()[bytes_.byte() % ops().size()](*this);
      if (elements_to_come(y.shape()) <= kMostElements) values_.push_back(y);
    });
  tape_.backward(sum(values_.back()));
  for (const Var& w : watched_) {
    const Tensor gradient = tape_.gradient(w);
    fuzz::require(gradient.shape() == w.shape() && gradient.dtype() == w.dtype(),
                  "a gradient is shaped like its input");
    gradient.clone();  // reads all of it
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::accept_or_refuse([&] { Program(fuzz::Bytes(data, size)).run(); });
}
