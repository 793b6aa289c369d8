// Properties of each mixing at n = 4, in f64: errors of rows, columns and orthogonality on random logits, its
// initialization, and the convergence of the iterative ones. Prints JSON, from which plot_mixings.py makes the tables
// of docs/mixings.md.
#include <nlohmann/json.hpp>

#include <apps/common/run_main.h>
#include <bench/mixing_convergence.h>
#include <braid/autograd/ops.h>
#include <braid/core/random.h>
#include <braid/mhc/mixings/mixing.h>
#include <fmt/format.h>

namespace braid::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kN = 4, kDraws = 1000;
constexpr int kIterations = 40;
constexpr double kDeviations[] = {1, 3, 10, 30};

Var normal(std::initializer_list<std::int64_t> shape, double deviation) {
  Rng rng(1);
  return Var(randn(shape, rng, DType::f64)) * deviation;
}

double largest(const Var& x) { return max(abs(x)).item(); }

Var identity() { return eye(kN, DType::f64); }

Json errors(const mhc::Mixing& mixing, double deviation) {
  const Var h = mixing(normal({kDraws, mixing.logits()}, deviation));
  return {{"row", largest(sum(h, {-1}) - 1)},
          {"column", largest(sum(h, {-2}) - 1)},
          {"orthogonality", largest(matmul(h, transpose(h, -2, -1)) - identity())},
          {"smallest_entry", min(h).item()}};
}

/// The mean norm of d<G, H>/dlogits over random G of norm 1, where training starts.
double gradient_at_start(const mhc::Mixing& mixing) {
  const Var g = normal({kDraws, kN, kN}, 1);
  const Var unit = g / sqrt(sum(g * g, {-2, -1}, true));
  Tape tape;
  const Var logits = tape.watch(mixing.start().broadcast_to({kDraws, mixing.logits()}));
  tape.backward(mixing(logits), unit.value());
  const Var gradient = tape.gradient(logits);
  return mean(sqrt(sum(gradient * gradient, {-1}))).item();
}

Json facts(std::string_view name) {
  const mhc::Mixing mixing(name, kN);
  Json json{{"name", name}, {"logits", mixing.logits()}, {"errors", Json::array()}};
  for (const double deviation : kDeviations) json["errors"].push_back(errors(mixing, deviation));
  json["from_identity"] = largest(mixing(mixing.start()) - identity());
  if (mixing.logits() > 0) json["gradient"] = gradient_at_start(mixing);
  return json;
}

Json to_json(const Convergence& c) { return {{"median", c.median}, {"p99", c.p99}}; }

Json convergence() {
  Json json{{"sinkhorn", Json::array()}, {"newton", Json::array()}};
  for (const double deviation : kDeviations) {
    const Tensor logits = normal({kDraws, kN * kN}, deviation).value();
    json["sinkhorn"].push_back(to_json(sinkhorn_convergence(logits, kIterations)));
    json["newton"].push_back(to_json(newton_convergence(logits, kIterations)));
  }
  return json;
}

}  // namespace
}  // namespace braid::bench

int main(int argc, char** argv) {
  using namespace braid::bench;
  return braid::apps::run_main("mixing_facts", "What is known of each mixing, as JSON.", argc, argv, [] {
    Json json{{"deviations", kDeviations}, {"mixings", Json::array()}, {"convergence", convergence()}};
    for (const std::string_view name : braid::mhc::mixing_names(kN)) json["mixings"].push_back(facts(name));
    fmt::print("{}\n", json.dump(1));
  });
}
