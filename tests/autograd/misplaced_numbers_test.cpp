// A number that another type of option would swallow does not compile.

#include <type_traits>

#include <gtest/gtest.h>

#include <braid/autograd/ops.h>
#include <braid/core/random.h>

namespace braid::misplaced_numbers_test {
namespace {

/// Whether f, a lambda that requires its body to compile, takes arguments of these types.
template <class... Args>
constexpr bool takes(auto f) {
  return std::is_invocable_v<decltype(f), Args...>;
}

using Ids = Tensor;

// ignore_index, not a label_smoothing
constexpr auto kCrossEntropy = [](auto&&... x)
  requires requires { cross_entropy(x...); }
{};
static_assert(takes<Var, Ids>(kCrossEntropy) && takes<Var, Ids, int>(kCrossEntropy));
static_assert(takes<Var, Ids, std::int64_t>(kCrossEntropy) && takes<Var, Ids, short>(kCrossEntropy));
static_assert(takes<Var, Ids, CrossEntropySettings>(kCrossEntropy));
static_assert(!takes<Var, Ids, double>(kCrossEntropy) && !takes<Tensor, Ids, float>(kCrossEntropy));

// groups, not an eps
constexpr auto kGroupNorm = [](auto&&... x)
  requires requires { group_norm(x...); }
{};
static_assert(takes<Var, int>(kGroupNorm) && takes<Var, std::size_t, double>(kGroupNorm));
static_assert(takes<Var, int, Var, Var, double, Channels>(kGroupNorm));
static_assert(!takes<Var, double>(kGroupNorm) && !takes<Var, float, double>(kGroupNorm));
static_assert(!takes<Var, double, Var, Var>(kGroupNorm));

// the count after, not the value
constexpr auto kPad = [](auto&&... x)
  requires requires { pad(x...); }
{};
static_assert(takes<Var, int, int, int>(kPad) && takes<Var, int, int, std::int64_t, double>(kPad));
static_assert(!takes<Var, int, int, double>(kPad) && !takes<Var, int, int, float, double>(kPad));

// the offset, not the base
constexpr auto kRotaryEmbedding = [](auto&&... x)
  requires requires { rotary_embedding(x...); }
{};
static_assert(takes<Var, double, int>(kRotaryEmbedding) &&
              takes<Var, int, std::int64_t, RotaryLayout>(kRotaryEmbedding));
static_assert(!takes<Var, double, double>(kRotaryEmbedding) && !takes<Var, int, float, RotaryLayout>(kRotaryEmbedding));

// integers, not ranges of real numbers
constexpr auto kArange = [](auto&&... x)
  requires requires { arange(x...); }
{};
constexpr auto kRandint = [](Rng & rng, auto... x)
  requires requires { randint(x..., Shape{2}, rng); }
{};
static_assert(takes<int>(kArange) && takes<std::size_t, DType>(kArange) && !takes<double>(kArange));
static_assert(takes<Rng&, int, std::int64_t>(kRandint));
static_assert(!takes<Rng&, double, double>(kRandint) && !takes<Rng&, int, float>(kRandint));
static_assert(!takes<Rng&, double, int>(kRandint));

// keep_dims, not an axis, and not the correction of var or the p of a norm
constexpr auto kVar = [](auto&&... x)
  requires requires { var(x...); }
{};
static_assert(takes<Var, Axes, bool, double>(kVar) && takes<Var, int>(kVar) && takes<Var, int, bool, int>(kVar));
static_assert(!takes<Var, Axes, double>(kVar) && !takes<Var, Axes, int>(kVar) && !takes<Var, bool>(kVar));

template <class... Args>
constexpr int reductions() {
  return takes<Args...>(kVar) + takes<Args...>([](auto&&... x) requires requires { sum(x...); } {}) +
         takes<Args...>([](auto&&... x) requires requires { mean(x...); } {}) +
         takes<Args...>([](auto&&... x) requires requires { max(x...); } {}) +
         takes<Args...>([](auto&&... x) requires requires { min(x...); } {}) +
         takes<Args...>([](auto&&... x) requires requires { norm(x...); } {}) +
         takes<Args...>([](auto&&... x) requires requires { stddev(x...); } {}) +
         takes<Args...>([](auto&&... x) requires requires { logsumexp(x...); } {}) +
         takes<Args...>([](auto&&... x) requires requires { argmax(x...); } {}) +
         takes<Args...>([](auto&&... x) requires requires { argmin(x...); } {});
}
static_assert(reductions<Var, int>() == 10 && reductions<Tensor, int, bool>() == 10);
static_assert(reductions<Var, int, int>() == 0 && reductions<Var, int, double>() == 0);

// dropout advances its rng, which a temporary cannot show
constexpr auto kDropout = [](auto&&... x)
  requires requires { dropout(std::forward<decltype(x)>(x)...); }
{};
static_assert(takes<Var, double, Rng&>(kDropout) && !takes<Var, double, Rng>(kDropout));
static_assert(!takes<Var, double, const Rng&>(kDropout));

TEST(MisplacedNumbers, DoNotCompile) { SUCCEED() << "by the assertions above"; }

}  // namespace
}  // namespace braid::misplaced_numbers_test
