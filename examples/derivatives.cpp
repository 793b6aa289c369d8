// Derivatives of any order: gradients of gradients, products with Jacobians and Hessians, whole matrices, a gradient
// inside a loss, how to check them, and what throws.
#include <functional>

#include <fmt/format.h>

#include <braid/braid.h>

#include "../apps/common/run_main.h"

using namespace braid;

struct Curve {
  nn::Linear hidden, out;
  Var operator()(const Var& x) const { return out(tanh(hidden(x))); }
  void params(auto&& visit) {
    visit("hidden", hidden);
    visit("out", out);
  }
};

Curve make_curve(DType dtype = DType::f64) {
  Rng rng(1);
  return {nn::Linear(2, 8, rng, {.dtype = dtype}), nn::Linear(8, 1, rng, {.dtype = dtype})};
}

Tensor points() {
  Rng rng(2);
  return randn({5, 2}, rng, DType::f64);
}

void gradients_of_gradients() {
  const auto cube = [](const Var& x) { return x * x * x; };
  const Var x = scalar(2, DType::f64);
  fmt::print("x^3 at 2: {}, {}, {}, {}\n\n", cube(x).item(), grad(cube)(x).item(), grad(grad(cube))(x).item(),
             grad(grad(grad(cube)))(x).item());
}

void products() {
  const Tensor x = Tensor::of<double>({2}, {1, 2}), v = Tensor::of<double>({2}, {1, 0});
  const auto [y, dy] = jvp([](const Var& x) { return x * x * sum(x); }, x, v);
  fmt::print("y = {}, J v = {}\n", y, dy);
  const Var hv = hvp([](const Var& x) { return sum(x * x * x); }, x, v);
  fmt::print("H v = {}\n\n", hv);
}

void products_of_a_model() {
  const Curve model = make_curve();
  const Tensor x = points(), target = zeros({5, 1}, DType::f64);
  const auto loss = [](const Curve& m, const Tensor& x, const Tensor& y) { return mse_loss(m(x), y); };
  const Curve direction = grad(loss)(model, x, target);  // any Curve will do
  const Curve product = hvp(loss, model, direction, x, target);
  fmt::print("of a model: {}\n\n", product.out.bias);
}

void matrices() {
  const Tensor x = Tensor::of<double>({2}, {3, 2});
  const auto f = [](const Var& x) { return x[0] * x[0] * x[1]; };
  fmt::print("hessian\n{}\n", hessian(f, x));
  const auto g = [](const Var& x) { return stack({x[0] * x[1], x[0] + x[1], exp(x[0])}, 0); };
  fmt::print("jacobian\n{}\n\n", jacobian(g, x));
}

void inside_a_loss() {
  const HigherOrder scope;
  const auto step = value_and_grad([](const Curve& m, const Tensor& x) {
    const Var slopes = grad([&](const Var& x) { return sum(m(x)); })(x);  // [N, 2], a variable
    return mean(slopes * slopes);
  });
  const auto [loss, grads] = step(make_curve(), points());
  fmt::print("a loss of slopes: {:.4f}, its gradient by out.weight: {}\n\n", loss, grads.out.weight);
}

/// Runs what throws.
void show(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    fmt::print("{}\n", error.what());
  }
}

void what_throws() {
  const Var x = Tensor::of<double>({2}, {1, 2});
  const auto cubes = [](const Var& x) { return sum(x * x * x); };
  show([&] { value_and_grad([&](const Var& x) { return sum(grad(cubes)(x)); })(x); });
  show([&] {
    value_and_grad([&](const Var& w) { return sum(grad([&](const Var& x) { return sum(w * x * x); })(x)); })(x);
  });
  show([&] { value_and_grad([&](const Var& x) { return sum(value_and_grad(cubes)(x).second); })(x); });
  const auto fixed = [](const Var& x) {  // an op without a rule
    return record("fixed", x.value() * 2, {x}, [](const Tensor& dy) { return dy * 2; });
  };
  show([&] { grad(grad([&](const Var& x) { return sum(fixed(x) * x); }))(x); });
}

void checks() {
  const Curve model = make_curve();
  const Tensor x = points();
  const auto loss = [&](const Curve& m) { return sum(m(x) * m(x)); };
  for (const auto& [name, options] :
       {std::pair("first order", GradcheckOptions{}), std::pair("second order", GradcheckOptions{.order = 2}),
        std::pair("by rules", GradcheckOptions{.by = GradcheckOptions::By::rules})}) {
    const GradcheckResult result = gradcheck_module(model, loss, options);
    fmt::print("{:12}  {} derivatives, worst relative error {:.0e}\n", name, result.derivatives, result.worst);
  }
}

void run() {
  gradients_of_gradients();
  products();
  products_of_a_model();
  matrices();
  inside_a_loss();
  what_throws();
  checks();
}

int main(int argc, char** argv) {
  return apps::run_main("derivatives", "Derivatives of any order, how to check them, and what throws.", argc, argv,
                        run);
}
