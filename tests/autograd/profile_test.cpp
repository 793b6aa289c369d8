#include <braid/autograd/profile.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <braid/autograd/ops.h>
#include <braid/autograd/value_and_grad.h>
#include <braid/core/random.h>

namespace braid::profile_test {
namespace {

using ::testing::AllOf;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

/// Of x [1, 5, 4] times w [3, 4] transposed, squared and summed, in f32.
Profile profile_of_two_steps() {
  Profile profile;
  Rng rng(1);
  const Tensor w = randn({3, 4}, rng), x = randn({1, 5, 4}, rng);
  const auto step = value_and_grad([&](const Var& weight) { return sum(tanh(linear(x, weight))); }, &profile);
  for (int i = 0; i < 2; ++i) {
    profile.start();
    step(Var(w));
    profile.lap("optimizer");
  }
  return profile;
}

auto row(const std::string& name, double bytes, double operations) {
  using Row = Profile::Row;
  return AllOf(Field(&Row::name, name), Field(&Row::calls, 2), Field(&Row::bytes, bytes),
               Field(&Row::operations, operations));
}

TEST(Profile, CountsWhatOpsMoveAndMultiply) {
  // Forward: inputs and output. Backward: these, dy, and the cotangents that are wanted.
  const double linear = 4 * ((20 + 12 + 15) + (20 + 12 + 15 + 15 + 12)), tanh = 4 * (30 + 60), sum = 4 * (16 + 32);
  EXPECT_THAT(profile_of_two_steps().rows(),
              UnorderedElementsAre(row("linear", 2 * linear, 2 * 3 * (2 * 5 * 3 * 4)), row("tanh", 2 * tanh, 0),
                                   row("sum", 2 * sum, 0), row("optimizer", 0, 0)));
}

TEST(Profile, TimesAreThoseOfTheSteps) {
  const auto start = std::chrono::steady_clock::now();
  const Profile profile = profile_of_two_steps();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  double total = 0;
  for (const Profile::Row& r : profile.rows()) {
    EXPECT_GT(r.forward_s, 0) << r.name;
    EXPECT_EQ(r.backward_s > 0, r.name != "optimizer") << r.name;
    total += r.forward_s + r.backward_s;
  }
  EXPECT_LE(total, elapsed.count());
}

TEST(Profile, PrintsATable) {
  const Profile profile = profile_of_two_steps();
  EXPECT_THAT(profile.table(), AllOf(HasSubstr("op         calls  forward ms  backward ms   share"),
                                     HasSubstr("\nlinear         1  "), HasSubstr(" ms a step\n")));
  EXPECT_THAT(profile.table({.bytes_per_s = 1, .operations_per_s = 1}), HasSubstr(" %\n"));
  EXPECT_THAT(profile.table({.operations_per_s = 1}), HasSubstr(" %\n"));
  EXPECT_THAT(profile.table({.bytes_per_s = 1}), testing::Not(HasSubstr(" %\n")));  // the last column is of operations
  EXPECT_THAT(Profile().table(), HasSubstr("0.00 ms a step"));
}

TEST(Profile, WritesChromesTraceFormat) {
  const auto trace = nlohmann::json::parse(profile_of_two_steps().chrome_trace());
  const auto& events = trace["traceEvents"];
  ASSERT_EQ(events.size(), 2 * (3 + 3 + 1));
  EXPECT_EQ(events[0]["name"], "linear");
  EXPECT_EQ(events[0]["cat"], "forward");
  EXPECT_EQ(events[0]["args"]["inputs"], "[1, 5, 4] [3, 4]");
  EXPECT_EQ(events[5]["cat"], "backward");
  for (std::size_t i = 1; i < events.size(); ++i)
    EXPECT_GE(events[i]["ts"].get<double>(), events[i - 1]["ts"].get<double>());
}

}  // namespace
}  // namespace braid::profile_test
