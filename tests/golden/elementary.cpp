#include <braid/autograd/ops.h>

#include <tests/golden/modules.h>

namespace braid::golden {
namespace {

double eps(const CaseInputs& a) { return a.settings.number("eps"); }
int axis(const CaseInputs& a) { return static_cast<int>(a.settings.integer("axis", -8, 7)); }

Var composed_rms_norm(const Var& x, const Var& weight, double eps) {
  return x / sqrt(mean(x * x, {-1}, true) + eps) * weight;
}

Var composed_layer_norm(const Var& x, const Var& weight, const Var& bias, double eps) {
  return composed_rms_norm(x - mean(x, {-1}, true), weight, eps) + bias;
}

std::vector<Module> norms() {
  return {
      {"rms_norm",
       {path("fused", [](const CaseInputs& a) { return rms_norm(a["x"], a["weight"], eps(a)); }),
        path("composed", [](const CaseInputs& a) { return composed_rms_norm(a["x"], a["weight"], eps(a)); })}},
      {"layer_norm",
       {path("fused", [](const CaseInputs& a) { return layer_norm(a["x"], a["weight"], a["bias"], eps(a)); }),
        path("composed",
             [](const CaseInputs& a) { return composed_layer_norm(a["x"], a["weight"], a["bias"], eps(a)); })}},
      {"softmax",
       {path("fused", [](const CaseInputs& a) { return softmax(a["x"], axis(a)); }),
        path("composed", [](const CaseInputs& a) { return exp(a["x"] - logsumexp(a["x"], {axis(a)}, true)); })}},
      {"log_softmax",
       {path("fused", [](const CaseInputs& a) { return log_softmax(a["x"], axis(a)); }),
        path("composed", [](const CaseInputs& a) { return a["x"] - logsumexp(a["x"], {axis(a)}, true); })}},
  };
}

std::vector<Module> activations() {
  return {
      {"gelu_erf", {path("op", [](const CaseInputs& a) { return gelu_erf(a["x"]); })}},
      {"gelu_tanh", {path("op", [](const CaseInputs& a) { return gelu(a["x"]); })}},
      {"silu",
       {path("op", [](const CaseInputs& a) { return silu(a["x"]); }),
        path("composed", [](const CaseInputs& a) { return a["x"] * sigmoid(a["x"]); })}},
  };
}

std::vector<Module> products() {
  return {
      {"embedding", {path("op", [](const CaseInputs& a) { return embedding(a["weight"], a["ids"].value()); })}},
      {"linear",
       {path("fused", [](const CaseInputs& a) { return linear(a["x"], a["weight"], a["bias"]); }),
        path("composed",
             [](const CaseInputs& a) { return sum(expand_dims(a["x"], -2) * a["weight"], {-1}) + a["bias"]; })}},
      {"matmul_broadcast", {path("op", [](const CaseInputs& a) { return matmul(a["a"], a["b"]); })}},
  };
}

Outputs reductions(const CaseInputs& a) {
  const std::vector<double> axes_of_case = a.settings.numbers("axes");
  const Axes axes(axes_of_case.begin(), axes_of_case.end());
  const Var& x = a["x"];
  return {{"y", mean(x, axes)}, {"sum", sum(x, axes)}, {"max", max(x, axes)}};
}

Var composed_cross_entropy(const CaseInputs& a) {
  const Var log_p = log_softmax(reshape(a["logits"], {-1, a["logits"].size(-1)}));
  return -mean(gather(log_p, 1, a["targets"].value().reshape({-1, 1})));
}

std::vector<Module> arithmetic() {
  return {
      {"broadcast_arithmetic", {path("ops", [](const CaseInputs& a) { return (a["a"] * a["b"] - a["a"]) / a["c"]; })}},
      {"cross_entropy",
       {path("fused", [](const CaseInputs& a) { return cross_entropy(a["logits"], a["targets"].value()); }),
        path("composed", composed_cross_entropy)}},
      {"reductions", {differentiated("ops", reductions)}},
  };
}

}  // namespace

std::vector<Module> elementary_modules() {
  std::vector<Module> all;
  for (const auto group : {norms, activations, products, arithmetic})
    for (Module& module : group()) all.push_back(std::move(module));
  return all;
}

}  // namespace braid::golden
