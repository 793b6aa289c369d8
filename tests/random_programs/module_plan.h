#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace braid::programs {

/// All that a random module and the numbers in it are made from.
struct ModulePlan {
  std::string kind = "linear", mixing = "";  // a connection with its mixing, or a module without
  std::int64_t batch = 1, tokens = 1, heads = 1, hidden = 1, blocks = 1;
  std::int64_t streams = 1, iterations = 1, keep_every = 1, head = 0;
  std::int64_t rotary = 0, swiglu = 0, constant = 0, stream_embedding = 0, composed = 0;  // 0 or 1
  std::uint64_t numbers = 0;  // seeds parameters and inputs; with an odd one they lie on a grid, where ties are

  std::int64_t channels() const { return 2 * heads; }
  bool operator==(const ModulePlan&) const = default;
};

/// What plans are about, in turn: `mhc cayley`, `attention`.
std::span<const std::string> module_kinds();

/// The plan of an index, of kind `index` modulo all.
ModulePlan random_plan(std::uint64_t seed, std::uint64_t index);

/// The smallest plan that still fails, one thing after the other made simple.
ModulePlan shrunk(ModulePlan plan, const std::function<bool(const ModulePlan&)>& fails);

/// A test of that name which fails as the module does, for namespace braid::programs; it needs
/// tests/random_programs/modules.h. `why` becomes a comment.
std::string test_text(const ModulePlan& plan, const std::string& why, const std::string& name);

}  // namespace braid::programs
