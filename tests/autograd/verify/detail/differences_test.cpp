#include <braid/autograd/verify/detail/differences.h>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <braid/core/tensor.h>

namespace braid::differences_test {
namespace {

TEST(Scales, AreOneWhereAllIsZero) {
  EXPECT_TRUE(identical(detail::scales(zeros({3}, DType::f64)), ones({3}, DType::f64)));
}

// 13 calls a distance: one is enough where f moves far beyond its rounding; two show that the rounding stays the same;
// an f that leaves its domain takes one more; and where rounding is all that moves, no distance is clear.
TEST(RoundingErrors, TakeSmallerDistancesWhereTheFirstAreNotClear) {
  struct Case {
    double rounding, slope, end;
    int calls;
  };
  for (const auto& [rounding, slope, end, calls] :
       {Case{1e-12, 1, 1, 13}, {1e-6, 1, 1, 26}, {1e-12, 1, 11.5 / 1024, 39}, {1e-6, 0, 1, 52}}) {
    int count = 0;
    const auto f = [&, r = rounding, s = slope, e = end](double t) {
      ++count;
      return scalar(t > e ? std::numeric_limits<double>::quiet_NaN() : 1 + s * t + r * std::sin(count * count),
                    DType::f64);
    };
    detail::rounding_errors(f, f);
    EXPECT_EQ(count, calls) << rounding << " " << slope << " " << end;
  }
}

}  // namespace
}  // namespace braid::differences_test
