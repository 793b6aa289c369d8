#include <braid/nn/verify/precision_report.h>

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/checkpoint.h>
#include <braid/autograd/ops.h>
#include <braid/autograd/value_and_grad.h>
#include <braid/core/map.h>
#include <braid/nn/convert.h>
#include <braid/nn/mlp.h>
#include <braid/nn/transformer.h>

#include "tests/nn/module_checks.h"
#include "tests/support.h"

namespace braid::nn::precision_report_test {
namespace {

using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using Op = PrecisionReport::Op;

struct Weights {
  Var w, v;
  void params(auto&& visit) {
    visit("w", w);
    visit("v", v);
  }
};

/// Two parameters, exact in f32, that are not zero.
Weights weights() { return {Tensor::of<float>({3}, {1, -2, 3}), Tensor::of<float>({3}, {4, 5, -0.5})}; }

/// x + by, with the derivative `slope`.
Var flawed(const char* name, const Var& x, double by, double slope) {
  return record(name, (Var(x.value()) + by).value(), {x}, [slope](const Tensor& dy) { return dy * slope; });
}

constexpr double kFlaw = 0x1p-10;
double in_f32(DType dtype, double flaw = kFlaw) { return dtype == DType::f32 ? flaw : 0; }

TEST(PrecisionReport, MeasuresAWrongDerivativeInF32) {
  const auto report = precision_report(weights(), [](const Weights& m, DType dtype) {
    return sum(flawed("flawed", m.w, 0, 1 + in_f32(dtype))) + sum(m.v);
  });
  ASSERT_EQ(report.rows.size(), 2U);
  const auto& [w, v] = std::tie(report.rows[0], report.rows[1]);
  EXPECT_EQ(w.name, "w");
  EXPECT_DOUBLE_EQ(w.gradient, std::sqrt(3));
  EXPECT_DOUBLE_EQ(w.relative_error, kFlaw);
  EXPECT_EQ(w.max_ulps, kFlaw / 0x1p-23);
  EXPECT_EQ(w.worst_op, "flawed");
  EXPECT_DOUBLE_EQ(w.share, 1);
  EXPECT_EQ(v.name, "v");
  EXPECT_EQ(v.relative_error, 0);
  EXPECT_EQ(v.worst_op, "");
  EXPECT_DOUBLE_EQ(report.relative_error, kFlaw / std::sqrt(2));
  EXPECT_LT(report.remainder, 1e-9);
  EXPECT_EQ(report.loss_error, 0);
}

TEST(PrecisionReport, MeasuresAWrongResultInF32) {
  const auto report = precision_report(weights(), [](const Weights& m, DType dtype) {
    const Var y = flawed("flawed", m.w, in_f32(dtype), 1);
    return sum(y * y) / 2 + sum(m.v);  // dw = y
  });
  EXPECT_DOUBLE_EQ(report.rows[0].relative_error, kFlaw * std::sqrt(3) / std::sqrt(14));
  EXPECT_EQ(report.rows[0].max_ulps, kFlaw / 0x1p-23);  // of the element that is 1
  EXPECT_EQ(report.rows[0].worst_op, "flawed");
  EXPECT_NEAR(report.rows[0].share, 1, 1e-9);
  EXPECT_EQ(report.rows[1].relative_error, 0);
  EXPECT_GT(report.loss_error, kFlaw / 10);
}

TEST(PrecisionReport, NamesTheOpThatCancels) {
  const auto cancels = [](const Var& x) {
    Tensor y = map(
        "cancels", [](auto a) { return (a + decltype(a)(1e4)) - decltype(a)(1e4); }, x.value());
    return record("cancels", std::move(y), {x}, [](const Tensor& dy) { return dy; });
  };
  Rng rng(1);
  const Weights m{randn({50}, rng), randn({50}, rng)};
  const auto report = precision_report(m, [&](const Weights& w) { return sum(tanh(cancels(w.w * w.v)) * exp(w.v)); });
  EXPECT_EQ(report.ops.front().name, "cancels");
  for (const auto& row : report.rows) {
    EXPECT_EQ(row.worst_op, "cancels") << row.name;
    EXPECT_GT(row.share, 0.99) << row.name;
    EXPECT_GT(row.relative_error, 1e-5) << row.name;
  }
}

TEST(PrecisionReport, SplitsAnErrorAmongOps) {
  const auto report = precision_report(weights(), [](const Weights& m, DType dtype) {
    const double flaw = in_f32(dtype);
    return sum(flawed("small", m.w, 0, 1 + flaw)) + sum(flawed("large", m.w, 0, 1 + 3 * flaw)) + sum(m.v);
  });
  const auto& row = report.rows.front();
  EXPECT_DOUBLE_EQ(row.relative_error, 2 * kFlaw);  // of 2
  EXPECT_EQ(row.worst_op, "large");
  EXPECT_NEAR(row.share, 0.75, 1e-9);
  ASSERT_EQ(report.ops.size(), 2U);
  EXPECT_EQ(report.ops[1].name, "small");
  EXPECT_NEAR(report.ops[1].share, 0.25, 1e-9);
}

TEST(PrecisionReport, SeesTheSumsOfCotangents) {
  const auto twice = [](const Var& x) { return sum(x * 1.0) + sum(x * 0x1p-24); };  // 1 + 2^-24 is 1 in f32
  for (const auto& loss : {std::function<Var(const Weights&)>([&](const Weights& m) { return twice(m.w) + sum(m.v); }),
                           std::function<Var(const Weights&)>([&](const Weights& m) { return twice(m.w * m.v); })}) {
    const auto report = precision_report(weights(), loss);
    EXPECT_EQ(report.rows[0].worst_op, "accumulate");
    EXPECT_NEAR(report.rows[0].relative_error, 0x1p-24, 0x1p-40);
    EXPECT_NEAR(report.rows[0].share, 1, 1e-6);
    EXPECT_LT(report.remainder, 1e-6);
  }
}

TEST(PrecisionReport, HasNoErrorWhereF32IsExact) {
  const auto report = precision_report(weights(), [](const Weights& m) { return sum(m.w * m.v * 2.0 - m.v); });
  for (const auto& row : report.rows) {
    EXPECT_GT(row.gradient, 0);
    EXPECT_EQ(row.relative_error, 0);
    EXPECT_EQ(row.max_ulps, 0);
    EXPECT_EQ(row.worst_op, "");
  }
  EXPECT_THAT(report.ops, IsEmpty());
  EXPECT_EQ(report.loss_error, 0);
  EXPECT_EQ(report.relative_error, 0);
  EXPECT_EQ(report.remainder, 0);
}

TEST(PrecisionReport, HasTheErrorsThatTwoRunsShow) {
  Rng rng(2);
  const MLP model(6, 20, rng);
  const Tensor x = randn({7, 6}, rng), y = randn({7, 6}, rng);
  const auto loss = [&](const MLP& m, DType dtype) { return mse_loss(m(x.to(dtype)), y.to(dtype)); };
  const auto report = precision_report(model, loss);
  const auto [low_loss, low] = value_and_grad(loss)(model, DType::f32);
  const auto [high_loss, high] = value_and_grad(loss)(to_dtype(model, DType::f64), DType::f64);
  EXPECT_DOUBLE_EQ(report.loss, high_loss);
  EXPECT_DOUBLE_EQ(report.loss_error, std::abs(low_loss - high_loss) / high_loss);
  std::vector<Tensor> truth;
  for_each_param(high, [&](const std::string&, const Var& g) { truth.push_back(g.value()); });
  auto row = report.rows.begin();
  for_each_param(low, [&](const std::string& name, const Var& g) {
    const Var exact = truth[static_cast<std::size_t>(row - report.rows.begin())];
    const auto norm = [](const Var& v) { return std::sqrt(sum(v * v).item()); };
    EXPECT_EQ(row->name, name);
    EXPECT_GT(row->relative_error, 1e-9) << name;
    EXPECT_NEAR(row->relative_error, norm(Var(g.value().to(DType::f64)) - exact) / norm(exact), 1e-15) << name;
    ++row;
  });
  double shares = 0;
  for (const Op& op : report.ops) shares += op.share;
  EXPECT_NEAR(shares, 1, 1e-4);
  EXPECT_LT(report.remainder, 1e-4);
}

TEST(PrecisionReport, CountsSmallElementsByTheLargest) {
  // 1, 1/2048 and an error of 2^-30 in the second: of an element of 2^-10.
  const Tensor slopes = Tensor::of<double>({2}, {1, 0x1p-11});
  const auto report = precision_report(Var(ones({2})), [&](const Var& w, DType dtype) {
    const Var flaw = Tensor::of<double>({2}, {0, in_f32(dtype, 0x1p-30)});
    const Tensor slope = (slopes + flaw).value().to(dtype);
    return sum(record("slope", w.value(), {w}, [slope](const Tensor& dy) { return dy * Var(slope); }));
  });
  EXPECT_EQ(report.rows.front().max_ulps, 0x1p-30 / (0x1p-10 * 0x1p-23));
}

TEST(PrecisionReport, NamesTheOpThatOverflows) {
  const auto report = precision_report(Var(full({2}, 100)), [](const Var& w) {
    const Var y = exp(w);  // Inf in f32
    return sum(y / y + w);
  });
  const auto& row = report.rows.front();
  EXPECT_TRUE(std::isnan(row.relative_error));
  EXPECT_TRUE(std::isnan(row.max_ulps));
  EXPECT_EQ(row.worst_op, "exp");
  EXPECT_TRUE(std::isnan(report.relative_error));
  EXPECT_THAT(report.table(), HasSubstr("nan"));
}

TEST(PrecisionReport, BlamesNoOpForANaNThatF64HasToo) {
  const auto report = precision_report(weights(), [](const Weights& m) { return sum(sqrt(m.w)) + sum(m.v); });  // of -2
  EXPECT_TRUE(std::isnan(report.rows[0].relative_error));
  EXPECT_EQ(report.rows[0].worst_op, "");
  EXPECT_EQ(report.rows[1].relative_error, 0);
}

TEST(PrecisionReport, LooksIntoCheckpoints) {
  const auto loss = [](const Weights& m) {
    return sum(checkpoint([](const Var& w, const Var& v) { return tanh(w) * sigmoid(v); }, m.w, m.v));
  };
  const auto report = precision_report(weights(), loss);
  EXPECT_THAT(report.ops, testing::Contains(Field(&Op::name, "tanh")));
  EXPECT_THAT(report.ops, Each(Field(&Op::name, testing::Ne("checkpoint"))));
}

TEST(PrecisionReport, DropsTheSameElementsInBothDtypes) {
  Rng rng(3);
  const Weights m{randn({1000}, rng), randn({1000}, rng)};
  const auto report = precision_report(m, [](const Weights& w) {
    Rng same(4);
    return sum(dropout(w.w * w.v, 0.3, same));
  });
  EXPECT_LT(report.relative_error, 1e-6);
}

TEST(PrecisionReport, DoesNotDependOnThreads) {
  Rng rng(5);
  const Transformer<> model({.vocab = 11, .context = 32, .channels = 32, .layers = 1, .heads = 2}, rng);
  const Tensor tokens = randint(0, 11, {8, 32}, rng);
  const auto on = [&](int threads) {
    const WithThreads scope(threads);
    return precision_report(model, [&](const Transformer<>& m) { return m.loss(tokens, tokens); });
  };
  const auto one = on(1), three = on(3);
  EXPECT_EQ(one.relative_error, three.relative_error);
  EXPECT_EQ(one.remainder, three.remainder);
  EXPECT_EQ(one.table(), three.table());
}

TEST(PrecisionReport, RefusesALossThatItCannotRepeat) {
  Rng rng(6);
  const auto refusal = [&](auto loss) { return message_of([&] { precision_report(weights(), loss); }); };
  EXPECT_THAT(refusal([&](const Weights& m) { return sum(dropout(m.w, 0.5, rng) * m.v * rng.uniform()); }),
              HasSubstr("precision_report: the loss is not deterministic: "));
  EXPECT_EQ(refusal([](const Weights& m, DType dtype) { return sum(dtype == DType::f32 ? exp(m.w) : tanh(m.w)); }),
            "precision_report: op 2 is tanh in f64 but was exp; the loss must evaluate the same ops in each dtype");
  EXPECT_EQ(refusal([](const Weights& m, DType dtype) { return sum(dtype == DType::f32 ? m.w : exp(m.w)); }),
            "precision_report: op 2 is exp in f64 but was sum; the loss must evaluate the same ops in each dtype");
  EXPECT_EQ(refusal([](const Weights& m, DType dtype) { return dtype == DType::f32 ? -sum(m.w) : sum(m.w); }),
            "precision_report: 3 ops in f64 but there were 4; the loss must evaluate the same ops in each dtype");
  EXPECT_EQ(refusal([](const Weights& m, DType dtype) { return dtype == DType::f64 ? -sum(m.w) : sum(m.w); }),
            "precision_report: op 3 is neg in f64 but was none; the loss must evaluate the same ops in each dtype");
  EXPECT_EQ(refusal([](const Weights& m) { return m.w * m.v; }),
            "precision_report: the loss must be a scalar but has shape [3]");
  EXPECT_EQ(message_of([&] { precision_report(std::vector<Var>{}, [&](const auto&) { return Var(zeros({})); }); }),
            "precision_report: the module has no parameters");
}

TEST(PrecisionReport, PrintsTheWorstFirst) {
  PrecisionReport report;
  report.loss_error = 1.25e-8;
  report.relative_error = 2e-7;
  report.remainder = 0.001;
  report.ops = {{"softmax", 1.5e-7, 0.75}, {"accumulate", 1e-7, 0.25}};
  report.rows = {
      {"a.weight", 12, 1e-7, 3.25, "softmax", 0.625}, {"b", 0.25, 4e-7, 1234, "accumulate", 1}, {"c", 0, 0, 0, "", 0}};
  EXPECT_EQ(report.table(2),
            "f32 beside f64         error\n"
            "loss                 1.2e-08\n"
            "gradient             2.0e-07    share\n"
            "  softmax            1.5e-07   75.0 %\n"
            "  accumulate         1.0e-07   25.0 %\n"
            "  remainder          2.0e-10\n"
            "\n"
            "parameter  gradient     error       ulps  worst op\n"
            "b           2.5e-01   4.0e-07     1234.0  accumulate, 100 %\n"
            "a.weight    1.2e+01   1.0e-07        3.2  softmax, 62 %\n"
            "1 more with smaller errors\n");
  for (const std::size_t place : {0, 1, 2}) {  // a row that is NaN comes before all
    PrecisionReport with_nan = report;
    with_nan.rows[place].name = "diverged";
    with_nan.rows[place].relative_error = NAN;
    EXPECT_THAT(with_nan.table(), HasSubstr("worst op\ndiverged "));
  }
  report.rows.resize(21);
  EXPECT_THAT(report.table(), testing::EndsWith("\n1 more with smaller errors\n"));
}

}  // namespace
}  // namespace braid::nn::precision_report_test
