#include <braid/autograd/ops.h>

#include <tests/golden/modules.h>

namespace braid::golden {
namespace {

double eps(const Arguments& a) { return a.config.number("eps"); }

std::vector<Module> norms() {
  return {
      {"rms_norm", {path("fused", [](const Arguments& a) { return rms_norm(a["x"], a["weight"], eps(a)); })}},
  };
}

std::vector<Module> products() {
  return {
      {"linear",
       {path("fused", [](const Arguments& a) { return linear(a["x"], a["weight"], a["bias"]); }),
        path("composed",
             [](const Arguments& a) { return sum(expand_dims(a["x"], -2) * a["weight"], {-1}) + a["bias"]; })}},
      {"matmul_broadcast", {path("op", [](const Arguments& a) { return matmul(a["a"], a["b"]); })}},
  };
}

std::vector<Module> arithmetic() {
  return {
      {"broadcast_arithmetic", {path("ops", [](const Arguments& a) { return (a["a"] * a["b"] - a["a"]) / a["c"]; })}},
      {"cross_entropy",
       {path("fused", [](const Arguments& a) { return cross_entropy(a["logits"], a["targets"].value()); })}},
  };
}

}  // namespace

std::vector<Module> elementary_modules() {
  std::vector<Module> all;
  for (const auto group : {norms, products, arithmetic})
    for (Module& module : group()) all.push_back(std::move(module));
  return all;
}

}  // namespace braid::golden
