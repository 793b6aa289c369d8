#include <tests/random_programs/module_plan.h>

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include <braid/core/random.h>
#include <braid/mhc/connection.h>
#include <braid/mhc/mixings/mixing.h>

namespace braid::programs {
namespace {

constexpr std::array kPlain{"linear", "layer_norm", "rms_norm", "embedding", "attention", "mlp"};

/// Each connection, and mhc with each of the other mixings.
const std::vector<ModulePlan>& plans() {
  static const auto all = [] {
    std::vector<ModulePlan> plans;
    for (const char* const kind : kPlain) plans.push_back({.kind = kind});
    for (const std::string_view kind : mhc::connection_names())
      plans.push_back({.kind = std::string(kind), .mixing = "sinkhorn"});
    for (const std::string_view mixing : mhc::mixing_names())
      if (mixing != "sinkhorn") plans.push_back({.kind = "mhc", .mixing = std::string(mixing)});
    return plans;
  }();
  return all;
}

/// A number of streams that the connection and its mixing are there for.
std::int64_t draw_streams(const ModulePlan& plan, Rng& rng) {
  if (plan.kind == "manifold") return 1 + rng.below(2);  // divides the channels
  std::int64_t n = 0;
  do n = 1 + rng.below(4);
  while (std::ranges::count(mhc::mixing_names(n), plan.mixing) == 0);
  return n;
}

/// What a plan may do without.
struct Part {
  std::int64_t ModulePlan::*value;
  const char* name;
};
constexpr std::array<Part, 14> kParts{{{&ModulePlan::batch, "batch"},
                                       {&ModulePlan::tokens, "tokens"},
                                       {&ModulePlan::heads, "heads"},
                                       {&ModulePlan::hidden, "hidden"},
                                       {&ModulePlan::blocks, "blocks"},
                                       {&ModulePlan::streams, "streams"},
                                       {&ModulePlan::iterations, "iterations"},
                                       {&ModulePlan::keep_every, "keep_every"},
                                       {&ModulePlan::head, "head"},
                                       {&ModulePlan::rotary, "rotary"},
                                       {&ModulePlan::swiglu, "swiglu"},
                                       {&ModulePlan::constant, "constant"},
                                       {&ModulePlan::stream_embedding, "stream_embedding"},
                                       {&ModulePlan::composed, "composed"}}};

}  // namespace

std::span<const std::string> module_kinds() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (const ModulePlan& plan : plans())
      all.push_back(plan.mixing.empty() ? plan.kind : plan.kind + " " + plan.mixing);
    return all;
  }();
  return names;
}

ModulePlan random_plan(std::uint64_t seed, std::uint64_t index) {
  Rng rng(seed, index << 20);
  ModulePlan plan = plans()[index % plans().size()];
  plan.batch = 1 + rng.below(2);
  plan.tokens = 1 + rng.below(3);
  plan.heads = 1 + rng.below(2);
  plan.hidden = 1 + rng.below(4);
  plan.blocks = 1 + rng.below(2);
  plan.rotary = rng.below(2);
  plan.swiglu = rng.below(2);
  plan.numbers = 2 * seed + index / plans().size();
  if (plan.mixing.empty()) return plan;
  plan.streams = draw_streams(plan, rng);
  plan.iterations = 1 + rng.below(5);
  plan.keep_every = 1 + rng.below(2);
  plan.head = rng.below(std::ssize(mhc::stream_head_names()));
  plan.constant = rng.below(4) == 0 ? 1 : 0;
  plan.stream_embedding = rng.below(2);
  plan.composed = rng.below(4) == 0 ? 1 : 0;
  return plan;
}

ModulePlan shrunk(ModulePlan plan, const std::function<bool(const ModulePlan&)>& fails) {
  for (ModulePlan before; before != plan;) {
    before = plan;
    for (const auto& [value, name] : kParts) {
      ModulePlan simpler = plan;
      simpler.*value = ModulePlan().*value;
      if (simpler != plan && fails(simpler)) plan = simpler;
    }
  }
  return plan;
}

std::string test_text(const ModulePlan& plan, const std::string& why, const std::string& name) {
  std::string fields = fmt::format(".kind = \"{}\", .mixing = \"{}\"", plan.kind, plan.mixing);
  for (const auto& [value, part] : kParts)
    if (plan.*value != ModulePlan().*value) fields += fmt::format(", .{} = {}", part, plan.*value);
  return fmt::format(
      "// {}\nTEST(RandomModules, {}) {{\n"
      "  const auto failure = check_module({{{}, .numbers = {}}}).failure;\n"
      "  EXPECT_FALSE(failure) << failure->message;\n}}\n",
      why, name, fields, plan.numbers);
}

}  // namespace braid::programs
