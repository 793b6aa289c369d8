#include <braid/autograd/ops/cross_entropy.h>

#include <numeric>
#include <tuple>

#include <braid/autograd/kernels/cross_entropy.h>
#include <braid/autograd/ops/detail/composing.h>
#include <braid/autograd/ops/detail/reduce_losses.h>
#include <braid/autograd/ops/gather.h>
#include <braid/autograd/ops/softmax.h>
#include <braid/core/detail/indexing.h>

namespace braid {
namespace {

/// Rows with the classes that they should have.
struct Labeled {
  Tensor logits;   // [..., V]
  Tensor targets;  // [...]
  std::int32_t ignore_index;
  Tensor weights = {};      // [...], those of the targets; 0 where they are ignored
  double total_weight = 0;  // their sum

  template <class T>
  operator kernels::LabeledRows<T>() const {
    return {kernels::Rows(logits.shape()), kernels::In{logits}, kernels::In{targets}, ignore_index};
  }
};

/// Throws ValueError unless each target is a class or ignored.
Labeled label(const Tensor& logits, const Tensor& targets, const CrossEntropySettings& settings) {
  Labeled in{logits.contiguous(), targets.contiguous(), settings.ignore_index};
  const std::int64_t classes = logits.size(-1);
  in.weights = Tensor(targets.shape(), compute_dtype(logits.dtype()));
  const Tensor of_class =
      settings.class_weights.defined() ? settings.class_weights.to(in.weights.dtype()).contiguous() : Tensor();
  const std::int32_t* target = in.targets.data<std::int32_t>();
  dispatch_float("cross_entropy", in.weights.dtype(), [&]<class T>(T) {
    T* weight = in.weights.mutable_data<T>();
    for (std::int64_t i = 0; i < targets.numel(); ++i) {
      const bool counts = target[i] != settings.ignore_index;
      check_value(!counts || (0 <= target[i] && target[i] < classes),
                  "cross_entropy: targets must lie in [0, {}) or equal ignore_index {} but the one at {} is {}",
                  classes, settings.ignore_index, detail::index_of(targets.shape(), i), target[i]);
      weight[i] = !counts ? T{0} : of_class.defined() ? of_class.data<T>()[target[i]] : T{1};
      in.total_weight += static_cast<double>(weight[i]);
    }
  });
  return in;
}

/// All [...]: weighted losses, maxima of the logits, and sums of exp(logits - maximum) over all classes but the target.
std::tuple<Tensor, Tensor, Tensor> forward(const Labeled& in) {
  const auto numbers = [&] { return Tensor(in.targets.shape(), in.weights.dtype()); };
  Tensor losses = numbers(), maxima = numbers(), others = numbers();
  kernels::cross_entropy_kernels().dispatch("cross_entropy", in.logits.dtype(), [&](const auto& kernel) {
    kernel.forward(in, kernels::Out{maxima}, kernels::Out{others}, kernels::Out{losses});
  });
  return {map("cross_entropy", std::multiplies(), losses, in.weights), maxima, others};
}

/// dlogits = dy weight / divisor * (softmax(logits) - onehot(targets)), zero where the target is ignored. dy is that of
/// all losses, [...], or of their sum.
Tensor backward(const Tensor& dy, const Labeled& in, const Tensor& maxima, const Tensor& others, double divisor) {
  auto scale = [divisor](auto dy, auto weight) {
    return static_cast<decltype(dy)>(static_cast<double>(dy) / divisor) * weight;
  };
  const Tensor scales = map("cross_entropy", scale, dy, in.weights);
  Tensor dlogits(in.logits.shape(), in.logits.dtype());
  kernels::cross_entropy_kernels().dispatch("cross_entropy", dlogits.dtype(), [&](const auto& kernel) {
    kernel.vjp(in, kernels::In{maxima}, kernels::In{others}, kernels::In{scales}, kernels::Out{dlogits});
  });
  return dlogits;
}

/// 0 where a target is ignored.
Tensor counts(const Labeled& in) { return Var(in.targets.to(DType::f64)) - in.ignore_index; }

Var composed_hard_losses(const Var& logits, const Labeled& in) {
  if (logits.size(-1) == 0) return sum(detail::widened(logits), {-1});  // every target is ignored
  const Tensor classes = where(counts(in), in.targets, 0.0);
  const Var log_p = log_softmax(detail::widened(logits));
  return where(counts(in), -squeeze(gather(log_p, -1, classes.expand_dims(-1)), -1) * in.weights, 0.0);
}

/// The losses of classes without smoothing, reduced.
Var hard_losses(const Var& logits, const Labeled& in, Reduction reduction) {
  if (Composed::active()) return detail::reduce_losses(composed_hard_losses(logits, in), reduction, in.total_weight);
  const auto [losses, maxima, others] = forward(in);
  const double divisor = detail::divisor(reduction, in.targets.shape(), in.total_weight);
  const auto reduced = [divisor, &losses = losses](auto zero) {
    const auto* loss = losses.data<decltype(zero)>();
    return scalar(std::accumulate(loss, loss + losses.numel(), 0.0) / divisor, losses.dtype());
  };
  const Tensor y = reduction == Reduction::none ? losses : dispatch_float("cross_entropy", losses.dtype(), reduced);
  return record("cross_entropy", y, {logits}, [in, maxima = maxima, others = others, divisor](const Tensor& dy) {
    return backward(dy, in, maxima, others, divisor);
  });
}

Var composed_soft_losses(const Var& logits, const Var& shares) {
  const Var log_p = log_softmax(logits);
  auto counted = [](auto log_p, auto s) { return decltype(s)(s != 0 || std::isfinite(log_p)); };
  return -sum(shares * where(map("cross_entropy", counted, log_p.value(), shares.value()), log_p, 0.0), {-1});
}

/// The losses -sum(shares log_softmax(logits)) for shares of the classes, [..., V] or [V].
Var soft_losses(const Var& logits, const Var& shares) {
  if (Composed::active()) return composed_soft_losses(logits, shares);
  const Tensor log_p = log_softmax(logits.value()), s = shares.value();
  auto term = [](auto log_p, auto s) { return s == 0 ? s : -s * log_p; };  // 0 for a class that is masked by -infinity
  // dlogits = dy (sum(s) softmax(logits) - s), ds = -dy log_softmax(logits)
  return record("cross_entropy", reduce_sum(map("cross_entropy", term, log_p, s), {-1}), {logits, shares},
                [log_p, s](const Tensor& dy, const Needs& needs) {
                  auto vjp_logits = [](auto dy, auto p, auto s, auto sum) { return dy == 0 ? dy : dy * (sum * p - s); };
                  auto vjp_shares = [](auto dy, auto log_p) { return -dy * log_p; };
                  const Tensor rows = dy.expand_dims(-1), sums = reduce_sum(s, {-1}, true);
                  return std::array{
                      needs[0] ? map("cross_entropy", vjp_logits, rows, exp(log_p).value(), s, sums) : Tensor(),
                      needs[1] ? sum_to(map("cross_entropy", vjp_shares, rows, log_p), s.shape()) : Tensor()};
                });
}

/// What smoothing gives to each class, [V].
Tensor smooth_shares(const Var& logits, const CrossEntropySettings& settings) {
  const double share = settings.label_smoothing / static_cast<double>(logits.size(-1));
  const Tensor& weights = settings.class_weights;
  return (weights.defined() ? Var(weights) : Var(ones({logits.size(-1)}, logits.dtype()))) * share;
}

Var with_probabilities(const Var& logits, const Var& targets, const CrossEntropySettings& settings) {
  check_same_dtype("cross_entropy", logits.value(), targets.value());
  check_shape(targets.shape() == logits.shape(),
              "cross_entropy: probabilities must have shape {} to match logits but have {} (classes have dtype i32)",
              logits.shape(), targets.shape());
  Var shares = settings.class_weights.defined() ? targets * settings.class_weights : targets;
  if (settings.label_smoothing > 0) shares = (1 - settings.label_smoothing) * shares + smooth_shares(logits, settings);
  return detail::reduce_losses(soft_losses(logits, shares), settings.reduction);
}

Var with_classes(const Var& logits, const Tensor& targets, const CrossEntropySettings& settings) {
  check_shape(targets.shape() == logits.shape().without(-1),
              "cross_entropy: targets must have shape {} to match logits {} but have {}", logits.shape().without(-1),
              logits.shape(), targets.shape());
  const Labeled in = label(logits.value(), targets, settings);
  if (settings.label_smoothing == 0) return hard_losses(logits, in, settings.reduction);
  const Var smooth = where(counts(in), soft_losses(logits, smooth_shares(logits, settings)), 0.0);
  const Var hard = hard_losses(logits, in, Reduction::none);
  return detail::reduce_losses((1 - settings.label_smoothing) * hard + smooth, settings.reduction, in.total_weight);
}

}  // namespace

Var cross_entropy(const Var& logits, const Var& targets, const CrossEntropySettings& settings) {
  check_floating("cross_entropy", logits.dtype());
  check_shape(logits.rank() > 0, "cross_entropy: logits must have at least one axis but have shape {}", logits.shape());
  const double smoothing = settings.label_smoothing;
  check_value(0 <= smoothing && smoothing <= 1, "cross_entropy: label_smoothing must lie in [0, 1] but is {}",
              smoothing);
  if (const Tensor& weights = settings.class_weights; weights.defined()) {
    check_parameter_dtype("cross_entropy", logits.value(), weights);
    check_shape(weights.shape() == Shape{logits.size(-1)},
                "cross_entropy: class_weights must have shape [{}] to match logits {} but have {}", logits.size(-1),
                logits.shape(), weights.shape());
  }
  if (logits.dtype() == DType::bf16 && (targets.dtype() != DType::i32 || smoothing > 0)) {
    CrossEntropySettings wide = settings;
    if (wide.class_weights.defined()) wide.class_weights = wide.class_weights.to(DType::f32);
    return cross_entropy(detail::widened(logits), detail::widened(targets), wide);
  }
  return targets.dtype() == DType::i32 ? with_classes(logits, targets.value(), settings)
                                       : with_probabilities(logits, targets, settings);
}

}  // namespace braid
