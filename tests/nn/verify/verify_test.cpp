#include <braid/nn/verify/verify.h>

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/ops.h>
#include <braid/nn/attention.h>
#include <braid/nn/mlp.h>
#include <braid/nn/norm.h>

#include "tests/nn/module_checks.h"
#include "tests/support.h"

namespace braid::nn::verify_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// The transformer block of examples/port_a_module.py, as PyTorch computed it.
const RecordedCase& recorded_block() {
  static const RecordedCase recorded =
      load_case(std::filesystem::path(__FILE__).parent_path() / "../../../examples/port_a_module.safetensors");
  return recorded;
}

/// Attention step by step. q, k, v [B, T, C].
Var composed_attention(const Var& q, const Var& k, const Var& v, std::int64_t heads, double scale) {
  const std::int64_t t = q.size(1);
  const auto split = [&](const Var& y) { return permute(reshape(y, {y.size(0), t, heads, -1}), {0, 2, 1, 3}); };
  std::vector<std::int32_t> past;
  for (std::int64_t i = 0; i < t * t; ++i) past.push_back(i % t <= i / t);
  const Var nothing = scalar(-std::numeric_limits<double>::infinity(), q.dtype());
  const Var scores =
      where(Tensor::of<std::int32_t>({t, t}, past), matmul(split(q), transpose(split(k))) * scale, nothing);
  return reshape(permute(matmul(softmax(scores), split(v)), {0, 2, 1, 3}), q.shape());
}

struct Block {
  LayerNorm norm1;
  MultiHeadAttention attention;
  LayerNorm norm2;
  MLP mlp;

  void params(auto&& visit) {
    visit("norm1", norm1);
    visit("attention", attention);
    visit("norm2", norm2);
    visit("mlp", mlp);
  }
};

Block block() {
  Rng rng;
  return {LayerNorm(16), MultiHeadAttention(16, 4, rng), LayerNorm(16), MLP(16, 64, rng)};
}

Var attention(const MultiHeadAttention& a, const Var& x, double scale = 0.5) {
  return a.o(composed_attention(a.q(x), a.k(x), a.v(x), 4, scale));
}

/// gelu, whose gradient lacks the factor for everything but 1.
Var careless_gelu(const Var& x) {
  return record("careless_gelu", gelu(x.value()).value(), {x}, [](const Tensor& dy) { return dy; });
}

/// The block around what a test gets wrong.
Var around(const Block& b, const Var& input, auto attend, auto feed) {
  const Var x = input + attend(b.norm1(input));
  return x + feed(b.norm2(x));
}

/// The verdict on the block with other attention, or another MLP.
Verification with_attention(auto attend) {
  return verify(recorded_block(), block(), [&](const Block& b, const CaseInputs& in) {
    return around(
        b, in["x"], [&](const Var& h) { return attend(b.attention, h); }, b.mlp);
  });
}
Verification with_mlp(auto feed) {
  return verify(recorded_block(), block(), [&](const Block& b, const CaseInputs& in) {
    return around(b, in["x"], b.attention, [&](const Var& h) { return feed(b.mlp, h); });
  });
}

Var run(const Block& b, const CaseInputs& in) { return around(b, in["x"], b.attention, b.mlp); }

TEST(Verify, PassesARightPortFusedOrStepByStep) {
  for (const Verification& result : {verify(recorded_block(), block(), run),
                                     with_attention([](auto& a, const Var& x) { return attention(a, x); })}) {
    EXPECT_TRUE(result) << result.message;
    EXPECT_EQ(result.table.size(), 14u);
    EXPECT_GT(result.worst, 0);
    EXPECT_LT(result.worst, 1e-14);
  }
}

TEST(Verify, LeavesTheModuleAsItIs) {
  const Block b = block();
  const NamedTensors before = to_tensors(b);
  EXPECT_TRUE(verify(recorded_block(), b, run));
  for (const auto& [name, tensor] : to_tensors(b)) EXPECT_TRUE(identical(tensor, before.at(name))) << name;
}

TEST(Verify, ComputesNoDerivativesOfAnOutputThatTheCallLacks) {
  RecordedCase recorded = recorded_block();
  recorded.tensors.emplace("cotangent.z", zeros({2}));
  recorded.tensors.emplace("direction.x", recorded.tensor("in.x"));
  EXPECT_THAT(verify(recorded, block(), run).message, HasSubstr("' was not computed"));
}

TEST(Verify, RunsInF32) {
  const Verification result = verify(recorded_block(), block(), run, {.dtype = DType::f32});
  EXPECT_TRUE(result) << result.message;
  EXPECT_GT(result.worst, 1e-8);
  EXPECT_EQ(result.tolerance, 2e-5);
  EXPECT_FALSE(verify(recorded_block(), block(), run, {.dtype = DType::f32, .tolerance = 1e-9}));
}

TEST(Verify, NamesAWrongEpsilonAfterFusedAttention) {
  Block b = block();
  b.norm2.eps = 1e-6;
  EXPECT_THAT(verify(recorded_block(), b, run).message,
              AllOf(StartsWith("out.y is off by 3.4e-06, more than 1e-10\n"
                               "first part that differs: 'norm2' [2, 6, 16], computed from 'attention.o': closest is "
                               "the output of op 'layer_norm' (#12 of 16), off by"),
                    Not(HasSubstr("softmax"))));
}

TEST(Verify, NamesTheFirstOfTwoMistakes) {
  Block b = block();
  b.norm1.eps = b.norm2.eps = 1e-6;
  EXPECT_THAT(verify(recorded_block(), b, run).message,
              HasSubstr("first part that differs: 'norm1' [2, 6, 16]: closest"));
}

TEST(Verify, NamesTheSoftmaxOfAForgottenScale) {
  EXPECT_THAT(with_attention([](auto& a, const Var& x) { return attention(a, x, 1); }).message,
              HasSubstr("first part that differs: 'attention.softmax' [2, 4, 6, 6], computed from 'attention.q', "
                        "'attention.k': closest is the output of op 'softmax'"));
}

TEST(Verify, NamesWhatFollowsSwappedQueriesAndKeys) {
  const std::string followed = "computed from 'attention.v', 'attention.softmax': closest is the output of op 'linear'";
  EXPECT_THAT(with_attention([](auto& a, const Var& x) {
                return a.o(composed_attention(a.k(x), a.q(x), a.v(x), 4, 0.5));
              }).message,
              HasSubstr("first part that differs: 'attention.softmax' [2, 4, 6, 6], computed from 'attention.q', "
                        "'attention.k': closest is the output of op 'softmax'"));
  EXPECT_THAT(with_attention([](auto& a, const Var& x) {
                const auto split = [&](const Var& y) { return reshape(y, {2, 6, 4, 4}); };
                return a.o(reshape(attention(split(a.k(x)), split(a.q(x)), split(a.v(x))), x.shape()));
              }).message,
              AllOf(HasSubstr("first part that differs: 'attention.o' [2, 6, 16], " + followed),
                    HasSubstr("; or before it 'attention.softmax', which no op gives by itself")));
}

TEST(Verify, NamesTheLayerOfAMissingBias) {
  EXPECT_THAT(with_mlp([](auto& m, const Var& x) { return m.down(gelu(linear(x, m.up.weight))); }).message,
              HasSubstr("first part that differs: 'mlp.up' [2, 6, 64], computed from 'norm2': closest is the output of "
                        "op 'linear' (#13 of 16)"));
}

TEST(Verify, SaysWhenNoPartDiffers) {
  EXPECT_THAT(
      verify(recorded_block(), block(), [](const Block& b, const CaseInputs& in) { return run(b, in) * 2.0; }).message,
      HasSubstr("\nnone of the 12 parts differs: the difference arises after them"));
}

TEST(Verify, NamesTheOpOfAWrongGradient) {
  EXPECT_EQ(
      with_mlp([](auto& m, const Var& x) { return m.down(careless_gelu(m.up(x))); }).message,
      "grad.attention.k.weight is off by 1.0e+00, more than 1e-10\n"
      "first gradient that differs (from the output back): that of 'mlp.up' [2, 6, 64], the output of op 'linear' "
      "(#13 of 16), off by 7.1e-01; it comes through 'careless_gelu' (#14)");
}

TEST(Verify, NamesAnOpThatIsWrongInItsGradientOnly) {
  const auto halved = [](const Var& x) {
    return record("halved", x.value(), {x}, [](const Tensor& dy) { return (dy * 0.5).value(); });
  };
  EXPECT_THAT(with_mlp([&](auto& m, const Var& x) { return m.down(halved(gelu(m.up(x)))); }).message,
              AllOf(HasSubstr("that of 'mlp.act' [2, 6, 64], the output of op 'gelu'"),
                    HasSubstr("; it comes through 'halved'")));
}

TEST(Verify, NamesWhereAGradientIsCut) {
  EXPECT_THAT(
      with_mlp([](auto& m, const Var& x) { return m(detach(x)); }).message,
      AllOf(HasSubstr("that of 'norm2' [2, 6, 16], the output of op 'layer_norm'"), HasSubstr("; nothing takes it")));
}

TEST(Verify, ComparesFirstWhatHasAnotherShape) {
  const auto flat = [](const Block& b, const CaseInputs& in) { return reshape(run(b, in), {-1, 16}); };
  const Verification result = verify(recorded_block(), block(), flat);
  EXPECT_THAT(result.message, StartsWith("out.y must have shape [2, 6, 16] but has [12, 16]\n"));
  EXPECT_TRUE(std::isnan(result.worst));
}

struct Other {
  Linear up, extra;
  void params(auto&& visit) {
    visit("mlp.up", up);
    visit("extra", extra);
  }
};

TEST(Verify, ListsAllParametersThatDoNotFit) {
  Rng rng;
  RecordedCase recorded = recorded_block();
  std::erase_if(recorded.tensors, [](const auto& entry) {
    return entry.first.starts_with("param.") && !entry.first.starts_with("param.mlp");
  });
  EXPECT_EQ(
      message_of([&] {
        verify(recorded, Other{Linear(3, 64, rng), Linear(2, 2, rng, {.bias = false})},
               [](const Other& m, const CaseInputs& in) { return m.up(in["x"]); });
      }),
      "verify: the parameters of port_a_module: extra.weight is missing, mlp.up.weight must have shape [64, 3] but "
      "has [64, 16], mlp.down.bias is unexpected, mlp.down.weight is unexpected");
}

/// Rows of a table, and their sums, by integer ids: y0 = weight[ids], y1 = the sums of y0's rows.
RecordedCase lookup() {
  const auto f64 = [](const Shape& shape, std::initializer_list<double> v) { return Tensor::of<double>(shape, v); };
  return {"lookup",
          {},
          {{"in.ids", Tensor::of<std::int32_t>({2}, {2, 0})},
           {"param.table", f64({3, 2}, {1, 2, 3, 4, 5, 6})},
           {"param.offset", f64({2}, {10, 20})},
           {"out.y0", f64({2, 2}, {15, 26, 11, 22})},
           {"out.y1", f64({2}, {41, 33})},
           {"cotangent.y0", f64({2, 2}, {1, 2, 3, 4})},
           {"cotangent.y1", f64({2}, {10, 20})},
           {"grad.table", f64({3, 2}, {23, 24, 0, 0, 11, 12})}},
          {},
          {"offset"}};
}

struct Lookup {
  Var weight = zeros({3, 2});
  std::vector<Var> operator()(const CaseInputs& in) const {
    const Var y = embedding(weight, in["ids"].value()) + in["offset"];
    return {y, sum(y, {-1})};
  }
  void params(auto&& visit) { visit("weight", weight); }
};

const VerifyOptions kTable{.name_of = [](const std::string& path) { return path == "weight" ? "table" : path; }};

TEST(Verify, TakesIntegersBuffersAndSeveralOutputs) {
  const auto call = [](const Lookup& m, const CaseInputs& in) { return m(in); };
  const Verification result = verify(lookup(), Lookup(), call, kTable);
  EXPECT_TRUE(result) << result.message;
  EXPECT_EQ(to_string(result),
            "out.y0      0.0e+00\nout.y1      0.0e+00\ngrad.table  0.0e+00\n3 of 3 agree within 1e-10\n");
  const auto by_name = [](const Lookup& m, const CaseInputs& in) {
    return std::map<std::string, Var>{{"y0", m(in)[0]}, {"y1", m(in)[1]}};
  };
  EXPECT_TRUE(verify(lookup(), Lookup(), by_name, {.tolerance = 0.0, .name_of = kTable.name_of}));
}

struct LookupWithBuffers : Lookup {
  Buffer shift{zeros({2})};
  Buffer own{full({1}, 1)};  // which the case lacks
  Var operator()(const CaseInputs& in) const {
    return (embedding(weight, in["ids"].value()) + shift.value) * Var(own.value);
  }
  void params(auto&& visit) { Lookup::params(visit), visit("shift", shift), visit("own", own); }
};

TEST(Verify, SetsBuffersOfRecordedNames) {
  const auto call = [](const LookupWithBuffers& m, const CaseInputs& in) {
    const Var y = m(in);
    return std::vector<Var>{y, sum(y, {-1})};
  };
  VerifyOptions options{.name_of = [](const std::string& path) {
    return path == "weight" ? "table" : path == "shift" ? "offset" : path;
  }};
  for (const DType dtype : {DType::f64, DType::f32}) {
    options.dtype = dtype;
    const Verification result = verify(lookup(), LookupWithBuffers(), call, options);
    EXPECT_TRUE(result) << result.message;
  }
  LookupWithBuffers wrong;
  wrong.shift.value = zeros({3});
  EXPECT_EQ(message_of([&] { verify(lookup(), wrong, call, options); }),
            "verify: the parameters of lookup: offset must have shape [3] but has [2]");
}

TEST(Verify, SaysThatAnInputWasDetached) {
  const auto detached = [](const Block& b, const CaseInputs& in) {
    return around(b, detach(in["x"]), b.attention, b.mlp);
  };
  EXPECT_THAT(verify(recorded_block(), block(), detached).message,
              testing::MatchesRegex("grad.x is off by .*, more than 1e-10; it is zero: is it detached, or passed as a "
                                    "mask, which gets no gradient\\?\n"
                                    "no gradient of the 12 parts differs: the difference arises before them"));
}

TEST(Verify, FailsWhatIsMissing) {
  const auto half = [](const Lookup& m, const CaseInputs& in) { return std::map<std::string, Var>{{"y0", m(in)[0]}}; };
  const Verification result = verify(lookup(), Lookup(), half, kTable);
  EXPECT_EQ(result.message, "the call returned y0 but the case has y0, y1");
  EXPECT_EQ(to_string(result),
            "out.y0      0.0e+00\nout.y1          nan  differs\ngrad.table      nan  differs\n"
            "1 of 3 agree within 1e-10\nthe call returned y0 but the case has y0, y1\n");
}

TEST(Verify, ComparesDerivativesAlongDirections) {
  // y0 = x^3 and y1 = 3 x at 2, and their derivatives along 0.5.
  const std::map<std::string, double> values{
      {"in.x", 2},    {"out.y0", 8},        {"out.y1", 6}, {"cotangent.y0", 2}, {"cotangent.y1", 5},
      {"grad.x", 39}, {"direction.x", 0.5}, {"jvp.y0", 6}, {"jvp.y1", 1.5},     {"hvp.x", 12}};
  RecordedCase recorded{"cube", {}, {}};
  for (const auto& [key, value] : values) recorded.tensors.emplace(key, scalar(value, DType::f64));
  const auto call = [](const CaseInputs& in) { return std::vector<Var>{in["x"] * in["x"] * in["x"], 3.0 * in["x"]}; };
  EXPECT_EQ(verify(recorded, call).message, "");
  for (const std::string key : {"jvp.y0", "jvp.y1", "hvp.x"}) {
    RecordedCase wrong = recorded;
    wrong.tensors.at(key) = scalar(values.at(key) + 0.5, DType::f64);
    EXPECT_THAT(verify(wrong, call).message, StartsWith(key + " is off by "));
    EXPECT_TRUE(verify(wrong, call, {.tolerance = 0.05})) << key;  // off by at most 0.25, and ten times that counts
  }
}

/// y = 3 tanh(permute(x)), recorded as permute(tanh(x)) and three times that.
TEST(Verify, FindsPartsWhoseAxesArePermuted) {
  Rng rng(3);
  const Tensor x = randn({2, 3, 4}, rng, DType::f64), y = x.permute({2, 0, 1}).contiguous();
  RecordedCase recorded{"layout",
                        {},
                        {{"in.x", x},
                         {"part.inner", tanh(x).value()},
                         {"part_grad.inner", full({2, 3, 4}, 3, DType::f64)},
                         {"part.outer", (tanh(y) * 3.0).value()},
                         {"out.y", zeros({4, 2, 3}, DType::f64)},
                         {"cotangent", ones({4, 2, 3}, DType::f64)},
                         {"grad.x", zeros({2, 3, 4}, DType::f64)}},
                        {{"inner", {}}, {"outer", {"inner"}}}};
  const auto call = [](const CaseInputs& in) { return tanh(permute(in["x"], {2, 0, 1})) * 3.0; };
  EXPECT_THAT(verify(recorded, call).message, HasSubstr("none of the 2 parts differs"));
  RecordedCase other = recorded;
  other.tensors["part.outer"] = zeros({5}, DType::f64);
  EXPECT_THAT(verify(other, call).message,
              HasSubstr("first part that differs: 'outer', for which no op has an output of its size"));
  recorded.tensors["out.y"] = (tanh(y) * 3.0).value();
  EXPECT_THAT(verify(recorded, call).message, HasSubstr("no gradient of the 2 parts differs"));
  recorded.tensors["part_grad.inner"] = full({2, 3, 4}, 2, DType::f64);
  EXPECT_THAT(verify(recorded, call).message, HasSubstr("that of 'inner' [2, 3, 4], the output of op 'tanh'"));
}

TEST(Verify, LooksForADifferenceAfterTheSourcesOfAPart) {
  Rng rng(3);
  const Tensor x = randn({6, 4}, rng, DType::f64), inner = tanh(x).value(), outer = (3.0 * x).value();
  const RecordedCase recorded{"order",
                              {},
                              {{"in.x", x},
                               {"part.inner", inner},
                               {"part.outer", outer},
                               {"out.y", outer},
                               {"cotangent", ones({6, 4}, DType::f64)},
                               {"grad.x", zeros({6, 4}, DType::f64)}},
                              {{"inner", {}}, {"outer", {"inner"}}}};
  const auto call = [](const CaseInputs& in) {
    const Var near = in["x"] * 2.999;
    return exp(tanh(in["x"])) + near;
  };
  EXPECT_THAT(verify(recorded, call).message,
              HasSubstr("'outer' [6, 4], computed from 'inner': closest is the output of op 'add' (#4 of 4)"));
}

/// v = exp(u) is used twice, once through a view that has a share of its gradient only, which is what was recorded.
TEST(Verify, ForgivesADoubtfulGradientWhenAnEarlierOneAgrees) {
  Rng rng(3);
  const Tensor x = randn({6, 4}, rng, DType::f64), u = tanh(x).value(), v = exp(u).value();
  RecordedCase recorded{"shares",
                        {},
                        {{"in.x", x},
                         {"part.x", x},  // an input, whose gradient is compared by itself
                         {"part_grad.x", ones({6, 4}, DType::f64)},
                         {"part.u", u},
                         {"part_grad.u", (5.0 * Var(v)).value()},
                         {"part.v", v},
                         {"part_grad.v", full({6, 4}, 3, DType::f64)},
                         {"out.y", (5.0 * Var(v)).value()},
                         {"cotangent", ones({6, 4}, DType::f64)},
                         {"grad.x", zeros({6, 4}, DType::f64)}},
                        {{"x", {}}, {"u", {"x"}}, {"v", {"u"}}}};
  const auto call = [](const CaseInputs& in) {
    const Var v = exp(tanh(in["x"]));
    return v * 2.0 + reshape(reshape(v, {24}) * 3.0, {6, 4});
  };
  EXPECT_THAT(verify(recorded, call).message, HasSubstr("no gradient of the 3 parts differs"));
  recorded.tensors["part_grad.u"] = v;
  EXPECT_THAT(verify(recorded, call).message, HasSubstr("that of 'v' [6, 4], the output of op 'exp'"));
}

TEST(Verify, RelatesErrorsToLargeReferencesOnly) {
  const auto f64 = [](std::initializer_list<double> values) { return Tensor::of<double>({2}, values); };
  EXPECT_DOUBLE_EQ(relative_error(f64({0.25, 0}), f64({0, 0})), 0.25);
  EXPECT_DOUBLE_EQ(relative_error(f64({1, 5}), f64({0, 4})), 0.25);
  EXPECT_TRUE(std::isnan(relative_error(f64({NAN, 9}), f64({0, 4}))));
}

}  // namespace
}  // namespace braid::nn::verify_test
