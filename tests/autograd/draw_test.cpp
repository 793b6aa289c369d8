#include <braid/autograd/draw.h>

#include <gmock/gmock.h>

#include <braid/autograd/checkpoint.h>
#include <braid/autograd/ops.h>
#include <braid/autograd/verify/gradcheck.h>
#include <braid/core/random.h>

namespace braid::draw_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// A square whose vjp lacks the factor 2.
Var half_square(const Var& x) {
  return record("half_square", Tensor(x.value() * x.value()), {x},
                [x = x.value()](const Tensor& dy) { return Tensor(dy * x); });
}

TEST(Draw, WritesDot) {
  Tape tape;
  const Var w = tape.watch(ones({3, 4})), x = ones({5, 4});
  const std::vector<Var> parts = split(linear(x, w), -1, {1, 2});
  const Var y = parts[1] * parts[1];
  EXPECT_EQ(draw(tape).dot({.names = {"w \"up\""}, .wrong = 3}), R"(digraph tape {
node [shape=box, style=filled, fillcolor=white, fontname=sans]
0 [label="w \"up\"\n[3, 4] f32\n48 B", tooltip="", shape=ellipse]
1 [label="linear\n[5, 3] f32\n60 B", tooltip="[5, 4] f32, [3, 4] f32"]
0 -> 1
2 [label="split\n[5, 1] f32, [5, 2] f32\n60 B", tooltip="[5, 3] f32"]
1 -> 2
3 [label="mul\n[5, 2] f32\n40 B", tooltip="[5, 2] f32, [5, 2] f32", fillcolor=red]
2 -> 3
2 -> 3
}
)");
}

TEST(Draw, OfAnEmptyTapeIsEmpty) {
  EXPECT_EQ(draw(Tape()).dot(), "digraph tape {\nnode [shape=box, style=filled, fillcolor=white, fontname=sans]\n}\n");
  EXPECT_THAT(draw(Tape()).html(), HasSubstr("A tape of 0 ops"));
}

TEST(Draw, ShowsTimesBytesAndDtypes) {
  Profile profile;
  Tape tape(&profile);
  profile.start();
  const Var x = tape.watch(ones({1000, 3000}, DType::bf16));
  const Var loss = sum(cast(x, DType::f32));
  const Drawing drawing = draw(tape);
  EXPECT_THAT(drawing.dot({.times = profile.ops()}),
              AllOf(HasSubstr("[1000, 3000] f32\\n12 MB\\n"), HasSubstr(" + 0 ms")));
  tape.backward(loss);
  profile.lap("optimizer");
  EXPECT_EQ(profile.ops().size(), 2u);
  EXPECT_THAT(drawing.dot({.times = profile.ops()}), AllOf(HasSubstr(" ms\""), Not(HasSubstr(" + 0 ms"))));
  EXPECT_THAT(drawing.html({.times = profile.ops()}), HasSubstr(" ms<td>watch [1000, 3000] bf16\n"));
  EXPECT_THAT(drawing.html(), HasSubstr("<td>[1000, 3000] f32<td>12 MB<td><td><td>watch [1000, 3000] bf16\n"));
}

TEST(Draw, ShowsMillisecondsAndBytesInTheirUnits) {
  Tape tape;
  exp(tape.watch(ones({1})));
  const std::map<std::size_t, Profile::Row> times{{1, {.name = "exp", .forward_s = 0.0999, .backward_s = 0.999}}};
  EXPECT_THAT(draw(tape).dot({.times = times}), HasSubstr("\\n99.9 + 999 ms\""));
  EXPECT_THAT(draw(tape).html({.times = times}), HasSubstr("<td>99.900 ms<td>999.000 ms<td>"));
  for (const std::int64_t elements : {2499, 2500, 250'000}) tape.watch(ones({elements}));
  EXPECT_THAT(draw(tape).dot(), AllOf(HasSubstr("\\n9996 B\""), HasSubstr("\\n10 kB\""), HasSubstr("\\n1 MB\"")));
}

TEST(Draw, ThePageNamesWhatOpsRead) {
  Tape tape;
  const Var w = tape.watch(ones({2})), b = tape.watch(ones({}));
  exp(w * b + ones({2}));
  const std::string page = draw(tape).html({.names = {"<w>&"}});
  EXPECT_THAT(page, HasSubstr("<tr><td>1<td>mul<td>[2] f32<td>8 B<td><td><td>&#60;w>&#38; [2] f32, watch [] f32\n"));
  EXPECT_THAT(page, HasSubstr("<tr><td>2<td>add<td>[2] f32<td>8 B<td><td><td>[2] f32, [2] f32\n"));
  EXPECT_THAT(page, AllOf(HasSubstr("A tape of 3 ops"), HasSubstr("\"0 0 100 96\""), HasSubstr("{ height: 24px }")));
  EXPECT_THAT(page, HasSubstr("><path d='M100,36C90,36 90,60 100,60'/>\n<path d='M100,60C90,60 90,84 100,84'/>\n<"));
}

TEST(Draw, TheOpAtFaultIsTheOneThatGradcheckFinds) {
  const auto f = [](const auto& x) { return sum(exp(half_square(sin(x[0]) + x[1]))); };
  const auto inside_a_checkpoint = [&](const auto& x) {
    return checkpoint([&](const Var& a, const Var& b) { return f(std::vector{a, b}); }, x[0], x[1]);
  };
  Rng rng(1);
  const std::vector<Tensor> inputs{randn({3}, rng, DType::f64), randn({3}, rng, DType::f64)};
  Tape tape;
  f(std::vector<Var>{tape.watch(inputs[0]), tape.watch(inputs[1])});
  const GradcheckResult result = gradcheck(f, inputs);
  ASSERT_THAT(result.message, HasSubstr("first wrong vjp: op 'half_square' (#3 of 5)"));
  ASSERT_EQ(result.wrong_op, 4u);
  EXPECT_THAT(draw(tape).dot({.wrong = result.wrong_op}),
              HasSubstr("4 [label=\"half_square\\n[3] f64\\n24 B\", tooltip=\"[3] f64\", fillcolor=red]"));
  EXPECT_THAT(draw(tape).html({.wrong = result.wrong_op}), HasSubstr("<tr class=wrong><td>3<td>half_square<td>"));
  EXPECT_EQ(gradcheck(f, inputs, {.blame = false}).wrong_op, std::nullopt);
  EXPECT_EQ(gradcheck(inside_a_checkpoint, inputs).wrong_op, 2u);
}

TEST(Draw, NeedsATapeThatHasNotRunBackward) {
  Tape tape;
  const Var x = tape.watch(ones({}));
  tape.backward(x);
  EXPECT_THAT([&] { draw(tape); },
              ::testing::ThrowsMessage<Error>("draw: backward has forgotten the ops of the tape; draw it before"));
}

}  // namespace
}  // namespace braid::draw_test
