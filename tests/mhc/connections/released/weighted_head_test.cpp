#include <braid/mhc/connections/released/weighted_head.h>

#include <cmath>

#include <gtest/gtest.h>

#include <tests/mhc/support.h>

namespace braid::mhc::weighted_head_test {
namespace {

/// By the formula, one token after the other.
Tensor expected(const WeightedHead& head, const Tensor& x) {
  const WeightedHeadSettings& s = head.settings;
  const std::int64_t n = head.streams(), channels = head.channels;
  Tensor y = zeros({x.size(0), channels}, DType::f64);
  for (std::int64_t t = 0; t < x.size(0); ++t) {
    double squares = 0, total = 0;
    for (const double v : x.select(0, t).to_vector<double>()) squares += v * v;
    std::vector<double> weights;
    for (std::int64_t i = 0; i < n; ++i) {
      double w = 0;
      for (std::int64_t c = 0; c < n * channels; ++c)
        w += x.at({t, c / channels, c % channels}) * head.fn.value().at({i, c});
      w /= std::sqrt(squares / static_cast<double>(n * channels) + s.norm_eps);
      const double logit = head.scale.value().at({0}) * w + head.base.value().at({i});
      weights.push_back(s.softmax ? std::exp(logit) : 1 / (1 + std::exp(-logit)) + s.hc_eps);
      total += weights.back();
    }
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t c = 0; c < channels; ++c)
        y.mutable_data<double>()[t * channels + c] +=
            weights[static_cast<std::size_t>(i)] / (s.softmax ? total : 1) * x.at({t, i, c});
  }
  return y;
}

TEST(WeightedHead, FollowsItsFormulaWithEverySetting) {
  Rng rng(1);
  for (const bool softmax : {false, true})
    for (const double hc_eps : {1e-6, 0.2})
      for (const double norm_eps : {1e-6, 0.3}) {
        WeightedHead head(5, 3, {.softmax = softmax, .hc_eps = hc_eps, .norm_eps = norm_eps, .dtype = DType::f64});
        EXPECT_NEAR(head.base.value().at({2}), softmax ? 0 : -std::log(2.0), 1e-15);  // the mean of three
        randomize(head, rng);
        const Tensor x = random({4, 3, 5}, rng);
        for (const bool composed : {false, true}) {
          const Form form(composed);
          EXPECT_LT(largest_difference(head(Var(x)).value(), expected(head, x)), 1e-14)
              << softmax << " " << hc_eps << " " << norm_eps;
        }
      }
}

}  // namespace
}  // namespace braid::mhc::weighted_head_test
