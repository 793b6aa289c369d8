#include <braid/autograd/ops/sort.h>

#include <tests/autograd/ops/support.h>
#include <algorithm>
#include <cmath>
#include <numeric>

#include <braid/autograd/ops/gather.h>

namespace braid::op_tests::sort_test {
namespace {

using ::testing::ElementsAre;
using ::testing::NanSensitiveDoubleEq;
using ::testing::Pointwise;
using ::testing::ThrowsMessage;

std::vector<std::int32_t> ids_of(const Tensor& ids) { return ids.to_vector<std::int32_t>(); }

/// Few values, so that there are many ties.
Tensor with_ties(const Shape& shape, std::uint64_t seed) {
  Rng rng(seed);
  return randint(-3, 4, shape, rng).to(DType::f64);
}

/// The stable order of a row, NaN being the largest.
std::vector<std::int32_t> reference(const std::vector<double>& row, bool descending) {
  std::vector<std::int32_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](std::int32_t i) { return std::isnan(row[i]) ? std::pair(1, 0.0) : std::pair(0, row[i]); };
  std::ranges::stable_sort(order, [&](auto a, auto b) { return descending ? key(b) < key(a) : key(a) < key(b); });
  return order;
}

TEST(Sort, MatchesTheStableSortOfEachRow) {
  for (const std::int64_t n : {0, 1, 2, 7, 64, 1000})
    for (const bool descending : {false, true})
      for (const Tensor& x : {with_ties({3, n}, 1), normal({3, n}, 2)}) {
        const auto [values, ids] = sort(x, 1, descending);
        EXPECT_EQ(ids_of(ids), ids_of(argsort(x, -1, descending)));
        for (std::int64_t row = 0; row < 3; ++row)
          EXPECT_EQ(ids_of(ids.select(0, row)), reference(x.select(0, row).to_vector<double>(), descending)) << n;
        expect_close(values.value(), gather(x, 1, ids).value(), 0);
      }
}

TEST(Sort, WorksAlongAnyAxisOfAnyLayout) {
  const Tensor x = with_ties({4, 5, 3}, 3);
  for (const int axis : {0, 1, -1}) {
    const auto [values, ids] = sort(x.permute({2, 0, 1}), axis);
    const auto expected = sort(x.permute({2, 0, 1}).clone().transpose(axis, -1).clone());
    EXPECT_TRUE(identical(values.value().contiguous(), expected.values.value().transpose(axis, -1).contiguous()));
    EXPECT_TRUE(identical(ids.contiguous(), expected.ids.transpose(axis, -1).contiguous()));
  }
}

TEST(Sort, PutsNaNAboveInfinity) {
  const Tensor x = f64({5}, {kNaN, kInfinity, -0.0, 0.0, kNaN});
  EXPECT_THAT(ids_of(argsort(x)), ElementsAre(2, 3, 1, 0, 4));
  EXPECT_THAT(ids_of(argsort(x, 0, true)), ElementsAre(0, 4, 1, 2, 3));
  EXPECT_THAT(sort(x).values.value().to_vector<double>(),
              Pointwise(NanSensitiveDoubleEq(), {-0.0, 0.0, kInfinity, kNaN, kNaN}));
}

TEST(Sort, TakesIntegers) {
  const auto [values, ids] = sort(i32({4}, {3, -2147483647 - 1, 2147483647, 3}), 0, true);
  EXPECT_EQ(values.dtype(), DType::i32);
  EXPECT_THAT(values.value().to_vector<std::int32_t>(), ElementsAre(2147483647, 3, 3, -2147483647 - 1));
  EXPECT_THAT(ids_of(ids), ElementsAre(2, 0, 3, 1));
}

TEST(Sort, SendsEachCotangentBackToItsElement) {
  const auto by_sort = [](auto x) { return sort(x[0], 0, true).values; };
  const auto by_topk = [](auto x) { return topk(x[0], 2).values; };
  const Tensor x = f64({4}, {2, 5, 5, 1});
  EXPECT_THAT(gradients(by_sort, {x}, f64({4}, {10, 20, 30, 40}))[0].to_vector<double>(), ElementsAre(30, 10, 20, 40));
  EXPECT_THAT(gradients(by_topk, {x}, f64({2}, {10, 20}))[0].to_vector<double>(), ElementsAre(0, 10, 20, 0));
  expect_gradients([](auto x) { return sort(x[0], 1).values; }, {normal({2, 7, 3}, 1)});
  expect_gradients([](auto x) { return topk(x[0], 3, 1).values; }, {normal({2, 7, 3}, 1)});
}

TEST(TopK, IsTheStartOfTheDescendingSort) {
  for (const Tensor& x : {with_ties({3, 40}, 1), normal({3, 40}, 2), f64({1, 3}, {1, kNaN, kNaN})})
    for (std::int64_t k = 0; k <= x.size(1); ++k) {
      const auto all = sort(x, 1, true), some = topk(x, k, 1);
      EXPECT_EQ(some.values.shape(), (Shape{x.size(0), k}));
      EXPECT_TRUE(identical(some.values.value().contiguous(), all.values.value().slice(1, 0, k).contiguous()));
      EXPECT_EQ(ids_of(some.ids), ids_of(all.ids.slice(1, 0, k)));
    }
  const auto columns = topk(f64({3, 2}, {1, 6, 3, 2, 2, 4}), 2, 0);
  expect_close(columns.values.value(), f64({2, 2}, {3, 6, 2, 4}));
  EXPECT_THAT(ids_of(columns.ids), ElementsAre(1, 0, 2, 2));
}

TEST(Sort, GivesTheSameBitsForAnyNumberOfThreads) {
  expect_same_bits_on_any_threads([](auto x) { return sort(x[0], 0).values; }, {with_ties({50, 3000}, 1)});
}

TEST(Sort, RejectsWhatIsNotThere) {
  EXPECT_THAT([] { sort(normal({2, 3}), 2); }, ThrowsMessage<ShapeError>("sort: x [2, 3] has no axis 2"));
  EXPECT_THAT([] { argsort(normal({}), 0); }, ThrowsMessage<ShapeError>("argsort: x [] has no axis 0"));
  EXPECT_THAT(
      [] {
        topk(normal({2, 3}), 4);
      },
      ThrowsMessage<ValueError>("topk: k must lie in [0, 3] for axis -1 of x [2, 3] but is 4"));
  EXPECT_THAT(
      [] {
        topk(normal({2, 3}), -1, 0);
      },
      ThrowsMessage<ValueError>("topk: k must lie in [0, 2] for axis 0 of x [2, 3] but is -1"));
  EXPECT_THAT(
      [] {
        sort(zeros({std::int64_t{1} << 31, 0}), 0);
      },
      ThrowsMessage<ShapeError>("sort: axis 0 of x [2147483648, 0] has more positions than i32 can number"));
}

}  // namespace
}  // namespace braid::op_tests::sort_test
