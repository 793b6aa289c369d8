#include <braid/autograd/tape.h>

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/exp.h>
#include <tests/support.h>

namespace braid::tape_test {
namespace {

using testing::ElementsAre;

Tensor vector(std::initializer_list<double> values) {
  return Tensor::of<double>({static_cast<std::int64_t>(values.size())}, values);
}

std::vector<double> gradient(const Tape& tape, const Var& x) { return tape.gradient(x).to_vector<double>(); }

/// `x` twice, handing out one cotangent for both.
std::vector<Var> halves(const Var& x) {
  const Tensor half = detach(x) / 2;
  return record("halves", std::vector{half, half}, std::span(&x, 1), [](std::span<const Tensor> dys, const Needs&) {
    Tensor dx;
    for (const Tensor& dy : dys)
      if (dy.defined()) dx = dx.defined() ? dx + dy / 2 : dy / 2;
    return std::vector{dx};
  });
}

TEST(Tape, PropagatesThroughAGraph) {
  Tape tape;
  const Var x = tape.watch(vector({2, 3})), y = tape.watch(vector({5, 7}));
  const Var z = x * y + x * x;
  tape.backward(z, vector({1, 10}));
  EXPECT_THAT(gradient(tape, x), ElementsAre(9, 130));
  EXPECT_THAT(gradient(tape, y), ElementsAre(2, 30));
}

TEST(Tape, WatchesNoUndefinedTensor) {
  Tape tape;
  EXPECT_EQ(message_of([&] { tape.watch(Tensor()); }), "Tape::watch: the tensor is undefined");
  EXPECT_EQ(tape.size(), 0U);
}

TEST(Tape, UsesOneAsTheCotangentOfAScalar) {
  Tape tape;
  const Var x = tape.watch(vector({3}));
  tape.backward(x * x);
  EXPECT_THAT(gradient(tape, x), ElementsAre(6));
}

TEST(Tape, ConstantsAreNotRecorded) {
  Tape tape;
  const Var a = vector({1, 2}), x = tape.watch(vector({3, 4}));
  EXPECT_FALSE((a * a).requires_grad());
  EXPECT_EQ(tape.size(), 1U);
  EXPECT_TRUE((a * x).requires_grad());
  EXPECT_EQ(tape.size(), 2U);
}

TEST(Tape, DetachCutsTheGradient) {
  Tape tape;
  const Var x = tape.watch(vector({3}));
  tape.backward(x * detach(x));
  EXPECT_THAT(gradient(tape, x), ElementsAre(3));
}

TEST(Tape, GivesZerosForWhatTheOutputDoesNotDependOn) {
  Tape tape;
  const Var x = tape.watch(vector({3})), unused = tape.watch(ones({2, 2}, DType::f32));
  tape.backward(x * x);
  EXPECT_TRUE(identical(tape.gradient(unused), zeros({2, 2}, DType::f32)));
}

TEST(Tape, AConstantOutputHasNoGradients) {
  Tape tape;
  const Var x = tape.watch(vector({3}));
  tape.backward(Var(scalar(1)));
  EXPECT_THAT(gradient(tape, x), ElementsAre(0));
}

TEST(Tape, AWatchedOutputGetsItsOwnCotangent) {
  Tape tape;
  const Var x = tape.watch(vector({3, 4}));
  tape.backward(x, vector({5, 6}));
  EXPECT_THAT(gradient(tape, x), ElementsAre(5, 6));
}

TEST(Tape, AddsTheCotangentsOfAllUses) {
  Tape tape;
  const Var x = tape.watch(vector({1}));
  tape.backward(x + x + x + x + x);
  EXPECT_THAT(gradient(tape, x), ElementsAre(5));
}

TEST(Tape, ACotangentHandedOutTwiceIsNotCorrupted) {
  // add's vjp returns dy itself for both inputs; a gets more later, which must not reach b or the caller's tensor.
  Tape tape;
  const Var a = tape.watch(vector({1, 2})), b = tape.watch(vector({3, 4}));
  const Var squared = a * a, y = a + b;
  const Tensor dy = vector({1, 1});
  const Var outputs[] = {y, squared};
  const Tensor dys[] = {dy, dy};
  tape.backward(outputs, dys);
  EXPECT_THAT(gradient(tape, a), ElementsAre(3, 5));
  EXPECT_THAT(gradient(tape, b), ElementsAre(1, 1));
  EXPECT_THAT(dy.to_vector<double>(), ElementsAre(1, 1));
}

TEST(Tape, OpsMayHaveSeveralOutputs) {
  Tape tape;
  const Var x = tape.watch(vector({8}));
  const std::vector<Var> y = halves(x);
  tape.backward(y[0] * y[1]);
  EXPECT_THAT(gradient(tape, x), ElementsAre(4));
}

TEST(Tape, AnUnusedOutputHasAnUndefinedCotangent) {
  for (const std::size_t used : {0U, 1U}) {
    Tape tape;
    const Var x = tape.watch(vector({8}));
    tape.backward(halves(x)[used]);
    EXPECT_THAT(gradient(tape, x), ElementsAre(0.5));
  }
}

TEST(Tape, BackwardTakesSeveralOutputs) {
  Tape tape;
  const Var x = tape.watch(vector({2})), constant = vector({1});
  const Var ys[] = {x * x, x * 3.0, constant, x};
  const Tensor dys[] = {vector({1}), vector({10}), vector({100}), Tensor()};
  tape.backward(ys, dys);
  EXPECT_THAT(gradient(tape, x), ElementsAre(34));
}

TEST(Tape, VjpsMaySkipWhatIsNotNeeded) {
  Tape tape;
  const Var x = tape.watch(vector({2})), constant = vector({3});
  const Var y = record("op", vector({1}), {constant, x}, [](const Tensor& dy, const Needs& needs) {
    EXPECT_FALSE(needs[0]);
    EXPECT_TRUE(needs[1]);
    return std::vector{Tensor(), dy};
  });
  tape.backward(y);
  EXPECT_THAT(gradient(tape, x), ElementsAre(1));
}

TEST(Tape, VjpsMayReturnAConstantVar) {
  Tape tape;
  const Var x = tape.watch(vector({3}));
  tape.backward(record("square", vector({9}), {x}, [x = x.value()](const Tensor& dy) { return 2 * dy * x; }));
  EXPECT_THAT(gradient(tape, x), ElementsAre(6));
}

TEST(Tape, VjpsMayReturnConstantVars) {
  Tape tape;
  const Var x = tape.watch(vector({3})), y = tape.watch(vector({5}));
  const auto product = [](const Var& a, const Var& b) {
    return record("product", a.value() * b.value(), {a, b}, [a = a.value(), b = b.value()](const Tensor& dy) {
      return std::vector{dy * b, dy * a};
    });
  };
  tape.backward(product(x, y));
  EXPECT_THAT(gradient(tape, x), ElementsAre(5));
  EXPECT_THAT(gradient(tape, y), ElementsAre(3));
}

TEST(Tape, RejectsAVjpThatReturnsATrackedVariable) {
  Tape tape;
  const Var x = tape.watch(vector({3})), y = record("mine", x.value(), {x}, [x](const Tensor&) { return x; });
  EXPECT_EQ(message_of([&] { tape.backward(y); }),
            "Var: this [1] variable is on a tape, but a Tensor has no gradient; write detach(x) or x.value()");
}

TEST(Tape, LongChainsDoNotOverflowTheStack) {
  Tape tape;
  const Var x = tape.watch(scalar(1));
  Var y = x;
  for (int i = 0; i < 200'000; ++i) y = y + x;
  tape.backward(y);
  EXPECT_EQ(tape.gradient(x).item(), 200'001);
}

TEST(Tape, AnAbandonedLongChainDoesNotOverflowTheStack) {
  Var y = Tape().watch(scalar(1));
  for (int i = 0; i < 200'000; ++i) y = -y;
  EXPECT_EQ(y.item(), 1);
}

TEST(Tape, AVariableKeepsItsTapeAlive) {
  Var y;
  {
    Tape tape;
    y = tape.watch(scalar(2)) * 2.0;
  }
  EXPECT_EQ((y * y).item(), 16);
}

TEST(Tape, FreesWhatVjpsSavedWhileItRunsBackward) {
  Tape tape;
  Var y = tape.watch(ones({1 << 20}));
  for (int i = 0; i < 10; ++i) y = y / 2.0;  // each saves its output, 4 MB
  const std::int64_t live = memory_stats().live_bytes;
  const Tensor dy = y.value();
  reset_peak_memory();
  tape.backward(y, dy);
  EXPECT_LE(memory_stats().peak_bytes, live + (2 << 22) + 4096);  // a cotangent comes, a cotangent goes
  EXPECT_LE(memory_stats().live_bytes, live - 8 * (1 << 22));
}

TEST(Tape, RejectsInputsOnDifferentTapes) {
  Tape first, second;
  const Var x = first.watch(vector({1})), y = second.watch(vector({1}));
  EXPECT_TRUE(message_of([&] { x + y; }).starts_with("add: inputs are on different tapes"));
  EXPECT_THAT(message_of([&] { x + y; }), ::testing::HasSubstr("pass a captured x as an argument, or x.value();"));
  EXPECT_EQ(message_of([&] { first.backward(y); }),
            "backward: y is on another tape; is it made of a variable that a function captured?");
  EXPECT_EQ(message_of([&] { first.gradient(y); }), "gradient: the variable is not on this tape");
  EXPECT_EQ(message_of([&] { first.gradient(Var(ones({1}))); }), "gradient: the variable is not on this tape");
}

TEST(Tape, RunsBackwardOnce) {
  Tape tape;
  const Var x = tape.watch(vector({1})), y = x * x;
  EXPECT_EQ(message_of([&] { tape.gradient(x); }), "gradient: run backward first");
  tape.backward(y);
  EXPECT_EQ(message_of([&] { tape.backward(y); }), "backward: this tape has run backward already");
  const std::string advice =
      ": this tape has run backward; record on a new one, and write x.value() for an x of the old one";
  EXPECT_EQ(message_of([&] { x + y; }), "add" + advice);
  EXPECT_EQ(message_of([&] { tape.watch(vector({1})); }), "watch" + advice);
}

TEST(Tape, HasNoGradientsWhenAVjpThrew) {
  Tape tape;
  const Var x = tape.watch(vector({1}));
  const Var y = record("mine", vector({1}), {x}, [](const Tensor&) -> Tensor { throw Error("no"); });
  EXPECT_EQ(message_of([&] { tape.backward(x * y); }), "no");
  EXPECT_EQ(message_of([&] { tape.gradient(x); }), "gradient: there is none, because backward threw an exception");
  EXPECT_EQ(message_of([&] { tape.backward(y); }), "backward: this tape has run backward already");
}

TEST(Tape, KnowsTheGradientsOfWhatItWatchesOnly) {
  Tape tape;
  const Var x = tape.watch(vector({1, 2})), y = x * x;
  tape.backward(y, vector({1, 1}));
  EXPECT_EQ(message_of([&] { tape.gradient(y); }),
            "gradient: this [2] variable is the result of an op; only watched ones have a gradient");
}

TEST(Tape, HandsGradientsOverAsSoonAsTheyAreFinal) {
  Tape tape;
  std::vector<std::string> order;
  const auto noted = [&](const char* name, const Var& x) {
    return record(name, x.value(), {x}, [&order, name](const Tensor& dy) {
      order.push_back(name);
      return dy;
    });
  };
  const Var early = tape.watch(vector({2})), both = tape.watch(vector({3})), late = tape.watch(vector({5}));
  const Var unread = tape.watch(ones({2, 3})), useless = tape.watch(vector({7, 7}));
  const Var first = noted("first", early) * both;
  static_cast<void>(exp(useless));
  const Var second = noted("second", first) * late;
  const Var y = noted("third", second * both);
  std::vector<Tensor> gradients(5);
  tape.backward(y, [&](std::size_t watched, Tensor gradient) {
    order.push_back(std::to_string(watched));
    gradients[watched] = std::move(gradient);
  });
  EXPECT_THAT(order, ElementsAre("third", "2", "second", "4", "1", "first", "0", "3"));
  EXPECT_EQ(gradients[0].item(), 45);
  EXPECT_EQ(gradients[1].item(), 60);
  EXPECT_EQ(gradients[2].item(), 18);
  EXPECT_TRUE(identical(gradients[3], zeros({2, 3})));
  EXPECT_TRUE(identical(gradients[4], zeros({2}, DType::f64)));
  EXPECT_EQ(message_of([&] { tape.gradient(early); }), "gradient: it was handed over by backward");
}

TEST(Tape, HandsGradientsOverOfAWatchedOutputAndOfNothing) {
  Tape tape, empty;
  std::vector<double> gradients;
  const GradientSink sink = [&](std::size_t, const Tensor& gradient) { gradients.push_back(gradient.item()); };
  tape.backward(tape.watch(scalar(3)), sink);
  empty.backward(scalar(3), sink);
  EXPECT_THAT(gradients, ElementsAre(1));
  EXPECT_EQ(message_of([&] { Tape().backward(ones({2}), sink); }), "backward: y has shape [2] but must be a scalar");
}

TEST(Tape, ChecksCotangents) {
  Tape tape;
  const Var x = tape.watch(vector({1, 2}));
  EXPECT_EQ(message_of([&] { tape.backward(x); }), "backward: y has shape [2]; give its cotangent, or a scalar");
  EXPECT_EQ(message_of([&] { tape.backward(x, vector({1})); }), "backward: dy must have shape [2] but has [1]");
  EXPECT_EQ(message_of([&] { tape.backward(x, ones({2})); }),
            "backward: inputs must have the same dtype but have f64 and f32");
  EXPECT_EQ(message_of([&] { tape.backward(std::span(&x, 1), {}); }),
            "backward: 1 outputs need 1 cotangents but got 0");
}

TEST(Tape, ChecksWhatVjpsReturn) {
  const auto error = [](auto vjp) {
    Tape tape;
    const Var x = tape.watch(vector({1, 2}));
    const Var y = record("mine", vector({1}), {x}, vjp);
    return message_of([&] { tape.backward(y); });
  };
  EXPECT_EQ(error([](const Tensor& dy) { return dy; }), "mine: the vjp returned shape [1] for input 0 of shape [2]");
  EXPECT_EQ(error([](const Tensor& dy) {
              return std::vector{dy, dy};
            }),
            "mine: the vjp returned 2 cotangents for 1 inputs");
  EXPECT_EQ(error([](const Tensor&) { return ones({2}, DType::f32); }),
            "mine: the vjp returned dtype f32 for input 0 of dtype f64");
}

TEST(Tape, WatchesFloatingPointOnly) {
  EXPECT_EQ(message_of([] { Tape().watch(ones({2}, DType::i32)); }),
            "Tape::watch: expected a floating-point tensor but has dtype i32");
}

}  // namespace
}  // namespace braid::tape_test
