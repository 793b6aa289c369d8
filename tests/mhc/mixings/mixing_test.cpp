#include <braid/mhc/mixings/mixing.h>

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/autograd/derivatives.h>
#include <braid/core/products/matmul.h>
#include <braid/mhc/connections/manifold_constrained_hc.h>
#include <braid/mhc/mixings/detail/family.h>
#include <tests/mhc/support.h>
#include <tests/support.h>

namespace braid::mhc::mixing_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// The mixing of that name for n streams, where it exists and is not too large to be differenced.
std::optional<Mixing> mixing_for(std::string_view name, std::int64_t n, const MixingSettings& settings = {}) {
  for (const mixings::Family* family : mixings::families())
    if (family->name == name && (!family->exists(n) || family->logits(n, settings) > 600)) return std::nullopt;
  return Mixing(name, n, settings);
}

/// Settings that make kernels take other ways than by default.
const std::vector<MixingSettings> kSettings{{.iterations = 1}, {.exact = Marginal::columns},
                                            {.eps = 1e-6},     {.exact = Marginal::columns, .eps = 1e-6},
                                            {.gamma = 0.5},    {.block = 3}};

/// Facts that hold for every mixing of n streams.
class EveryMixing : public testing::TestWithParam<std::string_view> {
 protected:
  /// Calls f(mixing) for some n.
  template <class F>
  void for_sizes(F f) const {
    for (const std::int64_t n : {1, 2, 3, 4, 5, 8, 16})
      if (const auto mixing = mixing_for(GetParam(), n)) {
        SCOPED_TRACE(n);
        f(*mixing);
      }
  }
};

INSTANTIATE_TEST_SUITE_P(Mixings, EveryMixing, testing::ValuesIn(mixing_names()),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(EveryMixing, PassesGradcheckFusedAndComposed) {
  Rng rng(1);
  for_sizes([&](const Mixing& mixing) {
    const Tensor logits = random({2, 3, mixing.logits()}, rng);
    for (const bool composed : {false, true}) {
      if (mixing.n() >= 8 && composed) continue;
      const Form form(composed);
      const GradcheckResult result = gradcheck([&](std::span<const Var> v) { return mixing(v[0]); }, {logits});
      EXPECT_TRUE(result.ok) << (composed ? "composed: " : "fused: ") << result.message;
    }
  });
}

TEST_P(EveryMixing, PassesGradcheckInTheModule) {
  Rng rng(8);
  for_sizes([&](const Mixing& mixing) {
    const std::int64_t n = mixing.n();
    if (n == 1 || n > 8) return;
    ManifoldConstrainedHC connection(2, n, rng, {.mixing = std::string(GetParam()), .dtype = DType::f64});
    randomize(connection, rng);
    const Tensor x = random({2, n, 2}, rng);
    const GradcheckResult result =
        gradcheck_module(connection, [&](const auto& m) { return m(x, [](const Var& u) { return tanh(u); }); });
    EXPECT_TRUE(result.ok) << result.message;
  });
}

TEST_P(EveryMixing, IsTheSameFusedAndComposedForAnyNumberOfMatrices) {
  Rng rng(2);
  for_sizes([&](const Mixing& mixing) {
    for (const double scale : {1.0, 3.0})
      for (const Shape& lead : {Shape{}, Shape{1}, Shape{7}, Shape{3, 11}, Shape{0}, Shape{257}}) {
        if (mixing.n() > 4 && lead.numel() > 33) continue;
        const Tensor logits = random(lead.concat({mixing.logits()}), rng, scale);
        const Tensor cotangent = random(lead.concat({mixing.n(), mixing.n()}), rng);
        const auto evaluate = [&](bool composed) {
          const Form form(composed);
          const auto loss = [&](const Var& l) { return sum(mixing(l) * cotangent); };
          return std::pair(mixing(logits).value(), value_and_grad(loss)(Var(logits)).second.value());
        };
        const auto [fused, dfused] = evaluate(false);
        const auto [composed, dcomposed] = evaluate(true);
        EXPECT_LT(largest_difference(fused, composed), 1e-12);
        EXPECT_LT(largest_difference(dfused, dcomposed), 1e-11);
      }
  });
}

/// The value, the gradient for a cotangent, and the product of its Hessian with a direction.
std::array<Tensor, 3> evaluate(const Mixing& mixing, bool composed, const Tensor& logits, const Tensor& cotangent,
                               const Tensor& direction) {
  const Form form(composed);
  const auto loss = [&](const Var& l) { return sum(mixing(l) * cotangent); };
  return {mixing(logits).value(), value_and_grad(loss)(Var(logits)).second.value(),
          hvp(loss, Var(logits), direction).value()};
}

/// In f64, both forms agree; in f32, both agree with f64 up to `tolerance`.
void expect_agreement(const Mixing& mixing, const Tensor& exact_logits, Rng& rng, double tolerance) {
  const Tensor logits = exact_logits.to(DType::f32), direction = randn(logits.shape(), rng);
  const Tensor cotangent = randn(logits.shape().without(-1).concat({mixing.n(), mixing.n()}), rng);
  const auto run = [&](bool composed, DType dtype) {
    return evaluate(mixing, composed, logits.to(dtype), cotangent.to(dtype), direction.to(dtype));
  };
  const auto exact = run(false, DType::f64), composed = run(true, DType::f64);
  for (std::size_t i = 0; i < exact.size(); ++i) EXPECT_LT(largest_difference(composed[i], exact[i]), 1e-10) << i;
  for (const bool form : {false, true}) {
    const auto rounded = run(form, DType::f32);
    for (std::size_t i = 0; i < exact.size(); ++i) EXPECT_LT(largest_difference(rounded[i], exact[i]), tolerance) << i;
  }
}

TEST_P(EveryMixing, IsTheSameFusedAndComposedForLogitsOfAnySize) {
  Rng rng(9);
  for (const std::int64_t n : {2, 3, 4, 5, 6, 7, 8})
    if (const auto mixing = mixing_for(GetParam(), n)) {
      SCOPED_TRACE(n);
      for (const Tensor& logits : {mixing->identity(), mixing->start()}) expect_agreement(*mixing, logits, rng, 1e-5);
      for (const double scale : {0, 1, 3, 10, 30, 100}) {
        SCOPED_TRACE(fmt::format("standard deviation {}", scale));
        // In f32, Cayley's rotation loses digits to the squares of its logits.
        expect_agreement(*mixing, random({50, mixing->logits()}, rng, scale), rng, 1e-5 + 1e-6 * scale * scale);
      }
    }
}

TEST_P(EveryMixing, StaysFiniteForAnyFiniteLogits) {
  Rng rng(11);
  for_sizes([&](const Mixing& mixing) {
    if (mixing.n() > 5) return;
    for (const double scale : {1e3, 1e6, 1e12, 1e18, 1e30})
      for (const DType dtype : {DType::f32, DType::f64})
        for (const bool composed : {false, true}) {
          const Tensor logits = random({10, mixing.logits()}, rng, scale), direction = randn(logits.shape(), rng);
          const Tensor cotangent = randn({10, mixing.n(), mixing.n()}, rng);
          for (const Tensor& result :
               evaluate(mixing, composed, logits.to(dtype), cotangent.to(dtype), direction.to(dtype)))
            EXPECT_LT(largest_difference(result, zeros(result.shape(), dtype)), 1e3) << mixing.n() << " " << scale;
        }
  });
}

TEST_P(EveryMixing, PassesGradcheckOfSecondOrder) {
  Rng rng(10);
  for_sizes([&](const Mixing& mixing) {
    if (mixing.n() > 4) return;
    for (const double scale : {1, 10, 30}) {
      SCOPED_TRACE(scale);
      const auto f = [&](std::span<const Var> v) { return mixing(v[0]); };
      const GradcheckResult result = gradcheck(f, {random({5, mixing.logits()}, rng, scale)}, {.order = 2});
      EXPECT_TRUE(result.ok) << result.message;
    }
  });
}

TEST_P(EveryMixing, HasTheTraitsThatItSays) {
  Rng rng(3);
  for_sizes([&](const Mixing& mixing) {
    const auto& traits = mixing.traits();
    const Tensor h = mixing(random({500, mixing.logits()}, rng, 2)).value();
    if (traits.rows) {
      EXPECT_LT(marginal_error(h, -1), 1e-12);
    }
    if (traits.columns) {
      EXPECT_LT(marginal_error(h, -2), 1e-12);
    }
    const Tensor one = eye(mixing.n()).to(DType::f64).broadcast_to(h.shape()).contiguous();
    const double skew = largest_difference(matrix_product(h, h.transpose()), one);
    if (traits.orthogonal) {
      EXPECT_LT(skew, 1e-12);
    }
    if (mixing.n() == 4) {  // and no others
      EXPECT_EQ(marginal_error(h, -1) < 1e-12, traits.rows);
      EXPECT_EQ(marginal_error(h, -2) < 1e-12, traits.columns);
      EXPECT_EQ(skew < 1e-12, traits.orthogonal);
      const Tensor far = mixing(random({500, mixing.logits()}, rng, 30)).value();
      EXPECT_EQ(reduce_min(far).item() < -1e-15, traits.negative);
    }
    if (!traits.negative) {
      for (const double entry : h.to_vector<double>()) ASSERT_GE(entry, -1e-15);
    }
  });
}

TEST_P(EveryMixing, LearnsFromItsStart) {
  Rng rng(7);
  for_sizes([&](const Mixing& mixing) {
    if (mixing.logits() == 0 || mixing.n() == 1) return;
    const Tensor cotangent = random({mixing.n(), mixing.n()}, rng);
    const auto grad =
        value_and_grad([&](const Var& l) { return sum(mixing(l) * cotangent); })(Var(mixing.start())).second;
    double largest = 0;
    for (const double g : grad.value().to_vector<double>()) largest = std::max(largest, std::abs(g));
    EXPECT_GT(largest, 1e-5);
  });
}

TEST_P(EveryMixing, DoesNotDependOnTheNumberOfThreads) {
  Rng rng(5);
  for_sizes([&](const Mixing& mixing) {
    if (mixing.n() > 4) return;
    const Tensor logits = random({1003, mixing.logits()}, rng).to(DType::f32);
    const Tensor cotangent = random({1003, mixing.n(), mixing.n()}, rng).to(DType::f32);
    const auto run = [&](int threads) {
      const WithThreads with(threads);
      const auto [y, grad] = value_and_grad([&](const Var& l) { return sum(mixing(l) * cotangent); })(Var(logits));
      return std::pair(mixing(logits).value(), grad.value());
    };
    const auto [y1, g1] = run(1);
    const auto [y3, g3] = run(3);
    EXPECT_TRUE(identical(y1, y3));
    EXPECT_TRUE(identical(g1, g3));
  });
}

/// Whether there is a number in each of `count` parts that is not finite.
std::vector<bool> with_nan(const Tensor& t, std::int64_t count) {
  const std::vector<double> values = t.to_vector<double>();
  std::vector<bool> found(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i])) found[i / (values.size() / found.size())] = true;
  return found;
}

TEST_P(EveryMixing, TurnsNaNAndInfinitiesIntoNaNOfThatMatrixOnly) {
  Rng rng(6);
  const auto expect_nan = [&](const Mixing& mixing) {
    const Tensor cotangent = random({9, mixing.n(), mixing.n()}, rng);
    for (const DType dtype : {DType::f32, DType::f64})
      for (std::int64_t logit = 0; logit < mixing.logits() && mixing.n() <= 4; ++logit)
        for (const double bad : {NAN, INFINITY, -INFINITY}) {
          Tensor logits = random({9, mixing.logits()}, rng);
          logits.mutable_data<double>()[4 * mixing.logits() + logit] = bad;
          const auto loss = [&](const Var& l) { return sum(mixing(l) * cotangent.to(dtype)); };
          const Tensor gradient = value_and_grad(loss)(Var(logits.to(dtype))).second.value();
          const std::vector<bool> expected{false, false, false, false, true, false, false, false, false};
          EXPECT_EQ(with_nan(mixing(logits.to(dtype)).value(), 9), expected) << logit << " " << bad;
          const std::vector<bool> of_gradient = with_nan(gradient, 9);
          for (std::size_t b = 0; b < 9; ++b) EXPECT_TRUE(b == 4 || !of_gradient[b]) << logit << " " << bad;
        }
  };
  for_sizes(expect_nan);
  for (std::size_t i = 0; i < kSettings.size(); ++i)
    for (const std::int64_t n : {2, 3, 4})
      if (const auto mixing = mixing_for(GetParam(), n, kSettings[i])) {
        SCOPED_TRACE(fmt::format("settings {}, n = {}", i, n));
        expect_nan(*mixing);
      }
}

TEST(Mixing, StartsAsFarFromTheIdentityAsItsLogitsSay) {
  const auto distance = [](const char* name) {
    const Mixing mixing(name, 4);
    return largest_difference(mixing(mixing.start()).value(), eye(4, DType::f64));
  };
  const double p = 1 / (1 + std::exp(-8.0));
  for (const char* name : {"sinkhorn", "newton", "rows", "circulant"})
    EXPECT_NEAR(distance(name), 3 / (std::exp(4.0) + 3), 1e-12) << name;
  EXPECT_NEAR(distance("kronecker"), 1 - p * p, 1e-12);
  EXPECT_NEAR(distance("diagonal"), 1 - p, 1e-12);
}

TEST(Mixing, BoundsLogitsOfBothFormsByTheirDType) {
  for (const bool composed : {false, true}) {
    const Form form(composed);
    const Tensor turn = Mixing("cayley", 2)(Tensor::of<double>({1}, {1e6})).value();
    EXPECT_NEAR(std::abs(turn.at({0, 1})), 2e-6, 1e-11);  // 2 a / (1 + a^2)
    const Tensor large = Tensor::of<float>({8}, {1e30F, 0, 0, 0, 0, 0, 0, 0});
    EXPECT_LT(largest_difference(Mixing("quaternion", 4)(large).value(), eye(4, DType::f32)), 1e-6);
  }
}

TEST(Mixing, HasTraitsThatDependOnItsSettings) {
  EXPECT_TRUE(Mixing("sinkhorn", 4).traits().rows);
  EXPECT_FALSE(Mixing("sinkhorn", 4, {.exact = Marginal::columns}).traits().rows);
  EXPECT_TRUE(Mixing("sinkhorn", 4, {.exact = Marginal::columns}).traits().columns);
  EXPECT_FALSE(Mixing("sinkhorn", 4, {.eps = 1e-3}).traits().rows);
}

TEST(Mixing, SaysWhichNamesAndSizesThereAre) {
  EXPECT_THAT([] { Mixing("sinkhorm", 4); },
              ThrowsMessage<ValueError>(HasSubstr("Mixing: name must be one of sinkhorn, ")));
  EXPECT_THAT([] { Mixing("sinkhorn", 0); }, ThrowsMessage<ValueError>("Mixing: streams must be >= 1 but is 0"));
  EXPECT_THAT([] { Mixing("kronecker", 3); },
              ThrowsMessage<ValueError>("Mixing: kronecker supports n = 1, 2, 4, 8, .. but n is 3"));
  EXPECT_THAT([] { Mixing("circulant", 4, {.gamma = 2}); },
              ThrowsMessage<ValueError>("Mixing: gamma must be in [0, 1] but is 2"));
  EXPECT_THROW(Mixing("circulant", 4, {.gamma = -0.5}), ValueError);
  EXPECT_THROW(Mixing("orthostochastic", 4, {.block = 0}), ValueError);
  EXPECT_THAT([] { Mixing("orthostochastic", 4, {.block = 65}); },
              ThrowsMessage<ValueError>("Mixing: block must be in [1, 64] but is 65"));
  EXPECT_THAT([] { Mixing("sinkhorn", 4, {.eps = -1}); },
              ThrowsMessage<ValueError>("Mixing: eps must be >= 0 but is -1"));
  EXPECT_EQ(Mixing("orthostochastic", 4, {.block = 64}).logits(), 256 * 255 / 2);
  for (const bool composed : {false, true})
    for (const DType dtype : {DType::i32, DType::bf16}) {
      const Form form(composed);
      EXPECT_THROW(Mixing("sinkhorn", 2)(zeros({4}, dtype)), DTypeError);
    }
  EXPECT_THAT(
      [] {
        Mixing("rows", 3)(zeros({2, 8}));
      },
      ThrowsMessage<ShapeError>("Mixing: logits must have shape [.., 9] for rows at n = 3 but has [2, 8]"));
}

}  // namespace
}  // namespace braid::mhc::mixing_test
