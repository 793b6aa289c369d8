// Gradients: of a model, of tensors, with more results than the loss, on an explicit tape; and where they stop,
// intended or not.
#include <cmath>

#include <fmt/format.h>

#include <braid/braid.h>

#include "../apps/common/run_main.h"

using namespace braid;

void of_one_variable() {
  const auto step = value_and_grad([](const Var& w) { return sum(w * w); });
  const auto [loss, grad] = step(Var(Tensor::of<double>({3}, {1, 2, 3})));
  fmt::print("loss {}, gradient {}\n\n", loss, grad);
}

void with_more_than_the_loss() {
  Rng rng(1);
  const nn::Linear classifier(4, 3, rng);
  const Tensor x = randn({5, 4}, rng), labels = randint(0, 3, {5}, rng);
  const auto step = value_and_grad([](const nn::Linear& m, const Tensor& x, const Tensor& labels) {
    const Var logits = m(x);
    return std::pair(cross_entropy(logits, labels), logits);
  });
  const auto [loss, grads, logits] = step(classifier, x, labels);
  const double right = mean(Var(equal(argmax(logits, -1), labels)).value().to(DType::f64)).item();
  fmt::print("loss {:.4f}, accuracy {:.2f}, |d bias| {:.4f}\n\n", loss, right,
             std::sqrt(sum(grads.bias * grads.bias).item()));
}

void of_several_tensors() {
  const Tensor a = Tensor::of<double>({2}, {3, 4}), b = Tensor::of<double>({2}, {5, 6});
  const auto [da, db] = vjp(mul, /*dy=*/ones({2}, DType::f64), a, b);
  fmt::print("d(a * b): da = {}, db = {}\n\n", da, db);
}

void on_a_tape() {
  Tape tape;
  const Var w = tape.watch(Tensor::of<double>({2}, {0.5, -1}));
  const Var y = exp(w) * 3.0;
  const Var z = sum(y);
  fmt::print("y = {}\n", y);
  tape.backward(z);
  fmt::print("dz/dw = {}\n\n", tape.gradient(w));
}

void stopped() {
  const auto step = value_and_grad([](const Var& w) { return sum(w * detach(w)); });
  fmt::print("w * detach(w): gradient {}\n", step(Var(Tensor::of<double>({2}, {3, 4}))).second);
  const auto lost = value_and_grad([](const Var& w) {
    const Tensor constant = w * 2.0;  // a Tensor has no gradient
    return sum(w * constant);
  });
  try {
    lost(Var(ones({2})));
  } catch (const Error& error) {
    fmt::print("{}\n\n", error.what());
  }
}

void with_less_memory() {
  Rng rng(2);
  const nn::MLP mlp(64, 256, rng);
  const Tensor x = randn({512, 64}, rng);
  const auto peak_of = [&](bool recompute) {
    const auto step = value_and_grad([&](const nn::MLP& m) {
      const auto layer = [](const nn::MLP& m, const Var& h) { return m(h); };
      Var h = x;
      for (int i = 0; i < 8; ++i) h = recompute ? checkpoint(layer, m, h) : m(h);
      return mean(h * h);
    });
    reset_peak_memory();
    const auto [loss, grads] = step(mlp);
    return std::pair(memory_stats().peak_bytes, grads.up.weight.value());
  };
  const auto [all, gradient] = peak_of(false);
  const auto [less, same] = peak_of(true);
  fmt::print("peak {:.1f} MB, with checkpoint {:.1f} MB; equal bits: {}\n\n", static_cast<double>(all) / 1e6,
             static_cast<double>(less) / 1e6, identical(gradient, same));
}

void not_finite() {
  const CheckFinite watch;  // while it is alive
  try {
    const auto step = value_and_grad([](const Var& w) { return sum(log(w) * 2.0); });
    step(Var(Tensor::of<float>({2}, {1, -1})));
  } catch (const NonFiniteError& error) {
    fmt::print("{}\n", error.what());
  }
}

void run() {
  of_one_variable();
  with_more_than_the_loss();
  of_several_tensors();
  on_a_tape();
  stopped();
  with_less_memory();
  not_finite();
}

int main(int argc, char** argv) {
  return apps::run_main("gradients", "Gradients of models and tensors, and what stops one.", argc, argv, run);
}
