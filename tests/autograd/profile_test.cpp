#include <braid/autograd/profile.h>

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <braid/autograd/ops.h>
#include <braid/autograd/value_and_grad.h>
#include <braid/core/random.h>

namespace braid::profile_test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
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

TEST(Profile, CountsTheProductsOfMatmulAndOfThePairsThatAttentionSees) {
  Profile profile;
  Tape tape(&profile);
  profile.start();
  const Var q = tape.watch(ones({1, 3, 2, 4})), k = ones({1, 5, 2, 4});
  attention(q, k, k);  // its queries see 3, 4 and 5 keys
  matmul(q, ones({4, 5}));
  EXPECT_EQ(profile.ops().at(1).operations, 2 * 2 * (2 * 4) * (3 + 4 + 5));
  EXPECT_EQ(profile.ops().at(2).operations, 2 * (3 * 2) * 4 * 5);
}

double seconds(const Profile::Row& row) { return row.forward_s + row.backward_s; }

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
  EXPECT_TRUE(std::ranges::is_sorted(profile.rows(), std::greater(), seconds));
}

TEST(Profile, PrintsATable) {
  const Profile profile = profile_of_two_steps();
  EXPECT_THAT(profile.table(), AllOf(HasSubstr("op         calls  forward ms  backward ms   share"),
                                     HasSubstr("\nlinear         1  "), HasSubstr(" ms a step\n")));
  EXPECT_THAT(profile.table({.bytes_per_s = 1, .operations_per_s = 1}), HasSubstr(" %\n"));
  EXPECT_THAT(profile.table({.operations_per_s = 1}), HasSubstr(" %\n"));
  EXPECT_THAT(profile.table({.bytes_per_s = 1}), testing::Not(HasSubstr(" %\n")));  // the last column is of operations
  EXPECT_THAT(Profile().table(), EndsWith("\n0.00 ms a step\n"));
}

TEST(Profile, TheTableIsOfOneStepAndAddsUp) {
  Profile profile;
  const auto step = value_and_grad([](const Var& w) { return sum(linear(ones({1000, 100}), w)); }, &profile);
  for (int i = 0; i < 2; ++i) {
    profile.start();
    step(Var(ones({500, 100})));
    profile.lap("rest");
  }
  double total = 0;
  Profile::Row product;
  for (const Profile::Row& row : profile.rows()) {
    total += seconds(row);
    if (row.name == "linear") product = row;
  }
  const double time = seconds(product);
  const std::string table =
      profile.table({.bytes_per_s = product.bytes / time, .operations_per_s = product.operations / time});
  EXPECT_THAT(table,
              HasSubstr(fmt::format(
                  "\nlinear      1  {:10.2f}  {:11.2f}  {:4.1f} %       7.4      100 %    100 %\n",  // 2.6 + 4.8 MB
                  1e3 * product.forward_s / 2, 1e3 * product.backward_s / 2, 100 * time / total)));
  EXPECT_THAT(table, ContainsRegex("\nsum         1 [^\n]+ % +-\n"));
  EXPECT_THAT(table, ContainsRegex("\nrest        1 +[0-9.]+ +- +[0-9.]+ % +- +- +-\n"));
  EXPECT_THAT(table, EndsWith(fmt::format("\n{:.2f} ms a step\n", 1e3 * total / 2)));
}

TEST(Profile, WritesChromesTraceFormat) {
  const auto trace = nlohmann::json::parse(profile_of_two_steps().chrome_trace());
  const auto& events = trace["traceEvents"];
  ASSERT_EQ(events.size(), 2 * (3 + 3 + 1));
  EXPECT_EQ(events[0]["name"], "linear");
  EXPECT_EQ(events[0]["cat"], "forward");
  EXPECT_EQ(events[0]["args"]["inputs"], "[1, 5, 4] [3, 4]");
  EXPECT_EQ(events[5]["cat"], "backward");
  EXPECT_EQ(events[0]["args"]["bytes"], 4 * (20 + 12 + 15));
  EXPECT_EQ(events[5]["args"]["operations"], 2 * (2 * 5 * 3 * 4));
  for (std::size_t i = 1; i < events.size(); ++i) {
    const double end = events[i - 1]["ts"].get<double>() + events[i - 1]["dur"].get<double>();
    EXPECT_GE(events[i]["ts"].get<double>(), end - 1e-3);
    if (i != 7) {  // which begins the second step
      EXPECT_LE(events[i]["ts"].get<double>(), end + 1e-3);
    }
  }
}

}  // namespace
}  // namespace braid::profile_test
