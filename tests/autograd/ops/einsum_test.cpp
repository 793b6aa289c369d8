#include <braid/autograd/ops/einsum.h>

#include <braid/autograd/ops/transpose.h>

#include <tests/autograd/ops/support.h>
#include <map>
#include <string>

namespace braid::op_tests::einsum_test {
namespace {

using ::testing::ThrowsMessage;

/// The sum over all values of all letters, one product at a time: what the text says, literally.
Tensor naive(const std::string& text, const std::vector<Tensor>& operands) {
  const std::size_t arrow = text.find("->");
  const std::string out = text.substr(arrow + 2);
  std::vector<std::string> in{""};
  for (const char c : text.substr(0, arrow)) c == ',' ? in.emplace_back() : in.back() += c;
  std::map<char, std::int64_t> size, index;
  for (std::size_t k = 0; k < in.size(); ++k)
    for (std::size_t axis = 0; axis < in[k].size(); ++axis)
      size[in[k][axis]] = operands[k].size(static_cast<int>(axis));
  const auto offset = [&](const std::string& letters) {
    std::int64_t at = 0;
    for (const char c : letters) at = at * size[c] + index[c];
    return at;
  };
  std::vector<std::int64_t> sizes;
  for (const char c : out) sizes.push_back(size[c]);
  Tensor y = zeros(Shape(sizes), DType::f64);
  const std::function<void(std::map<char, std::int64_t>::const_iterator)> visit = [&](auto letter) {
    if (letter == size.cend()) {
      double product = 1;
      for (std::size_t k = 0; k < in.size(); ++k) product *= operands[k].to_vector<double>()[offset(in[k])];
      y.mutable_data<double>()[offset(out)] += product;
      return;
    }
    for (index[letter->first] = 0; index[letter->first] < letter->second; ++index[letter->first])
      visit(std::next(letter));
  };
  visit(size.cbegin());
  return y;
}

struct Case {
  std::string text;
  std::vector<Shape> shapes;
};

void PrintTo(const Case& einsum, std::ostream* out) { *out << einsum.text; }

class Einsum : public ::testing::TestWithParam<Case> {
 protected:
  std::vector<Tensor> inputs() const {
    std::vector<Tensor> list;
    for (const Shape& shape : GetParam().shapes) list.push_back(normal(shape, list.size()));
    return list;
  }
};

TEST_P(Einsum, MatchesTheSumOfProducts) {
  const std::vector<Tensor> x = inputs();
  expect_close(einsum(GetParam().text, std::vector<Var>(x.begin(), x.end())).value(), naive(GetParam().text, x));
}

TEST_P(Einsum, GradientsPassGradcheck) {
  expect_gradients([](auto x) { return einsum(GetParam().text, x); }, inputs());
}

INSTANTIATE_TEST_SUITE_P(OneOperand, Einsum,
                         ::testing::Values(Case{"ij->ji", {{2, 3}}}, Case{"ijk->kij", {{2, 3, 4}}},
                                           Case{"ijk->ik", {{2, 3, 4}}}, Case{"ijk->", {{2, 3, 4}}}, Case{"->", {{}}},
                                           Case{"ii->i", {{3, 3}}}, Case{"ii->", {{3, 3}}}, Case{"iji->j", {{3, 2, 3}}},
                                           Case{"iii->i", {{2, 2, 2}}}, Case{"iijj->ji", {{2, 2, 3, 3}}}));
INSTANTIATE_TEST_SUITE_P(
    TwoOperands, Einsum,
    ::testing::Values(Case{"ij,jk->ik", {{2, 3}, {3, 4}}}, Case{"bij,bjk->bik", {{2, 2, 3}, {2, 3, 4}}},
                      Case{"ij,kj->ki", {{2, 3}, {4, 3}}}, Case{"bhqd,bhkd->bhqk", {{2, 2, 3, 2}, {2, 2, 4, 2}}},
                      Case{"btij,btjc->btic", {{2, 3, 2, 2}, {2, 3, 2, 3}}}, Case{"i,j->ij", {{2}, {3}}},
                      Case{"i,i->", {{3}, {3}}}, Case{"bi,bi->b", {{2, 3}, {2, 3}}},
                      Case{"ij,ij->ij", {{2, 3}, {2, 3}}}, Case{"ij,j->ij", {{2, 3}, {3}}},
                      Case{"ij,k->ik", {{2, 3}, {2}}}, Case{"ij,kl->", {{2, 3}, {2, 2}}},
                      Case{"aijk,kjb->bia", {{2, 2, 3, 2}, {2, 3, 2}}}, Case{"ij,->ji", {{2, 3}, {}}},
                      Case{"ii,ij->ij", {{3, 3}, {3, 2}}}, Case{"ij,jj->i", {{2, 3}, {3, 3}}},
                      Case{"abcd,efgh->hcabdefg", {{2, 1, 2, 1}, {1, 2, 1, 3}}}));

INSTANTIATE_TEST_SUITE_P(ManyOperands, Einsum,
                         ::testing::Values(Case{"ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}}},
                                           Case{"i,j,ij->", {{2}, {3}, {2, 3}}}, Case{"i,i,i->i", {{3}, {3}, {3}}},
                                           Case{"bi,bj,ijk->bk", {{2, 3}, {2, 2}, {3, 2, 4}}},
                                           Case{"i,j,k->kji", {{2}, {3}, {2}}}, Case{",ij,->j", {{}, {2, 3}, {}}},
                                           Case{"ii,ij,jj->j", {{2, 2}, {2, 3}, {3, 3}}},
                                           Case{"ab,bc,cd,de,ea->", {{2, 3}, {3, 2}, {2, 3}, {3, 2}, {2, 2}}},
                                           Case{"ij,kl,mn->nk", {{2, 2}, {2, 2}, {2, 3}}}));

/// An einsum, and the same without ellipses for operands that are broadcast before.
struct EllipsisCase {
  std::string text, explicit_text;
  std::vector<Shape> shapes, broadcast;
};

void PrintTo(const EllipsisCase& einsum, std::ostream* out) { *out << einsum.text; }

class EinsumEllipsis : public ::testing::TestWithParam<EllipsisCase> {};

TEST_P(EinsumEllipsis, StandsForTheAxesThatAreNotNamed) {
  const EllipsisCase& einsum_case = GetParam();
  std::vector<Tensor> x, broadcast;
  for (std::size_t i = 0; i < einsum_case.shapes.size(); ++i) {
    x.push_back(normal(einsum_case.shapes[i], i));
    broadcast.push_back(x.back().broadcast_to(einsum_case.broadcast[i]).clone());
  }
  const auto f = [&](auto v) { return einsum(einsum_case.text, v); };
  expect_close(f(std::vector<Var>(x.begin(), x.end())).value(), naive(einsum_case.explicit_text, broadcast));
  expect_gradients(f, x);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, EinsumEllipsis,
    ::testing::Values(
        EllipsisCase{"...->...", "ab->ab", {{2, 3}}, {{2, 3}}},
        EllipsisCase{"...ij->...ji", "ij->ji", {{2, 3}}, {{2, 3}}},
        EllipsisCase{"...ij->j...i", "abij->jabi", {{2, 3, 2, 4}}, {{2, 3, 2, 4}}},
        EllipsisCase{"i...i->...", "iai->a", {{3, 2, 3}}, {{3, 2, 3}}},
        EllipsisCase{"...i->i", "abi->i", {{2, 3, 2}}, {{2, 3, 2}}}, EllipsisCase{"i->...i", "i->i", {{3}}, {{3}}},
        EllipsisCase{
            "...ij,...jk->...ik", "abij,abjk->abik", {{2, 3, 2, 4}, {2, 3, 4, 2}}, {{2, 3, 2, 4}, {2, 3, 4, 2}}},
        EllipsisCase{"...ij,jk->...ik", "abij,jk->abik", {{2, 3, 2, 4}, {4, 2}}, {{2, 3, 2, 4}, {4, 2}}},
        EllipsisCase{"...ij,...jk->...ik", "abij,abjk->abik", {{2, 1, 2, 4}, {3, 4, 2}}, {{2, 3, 2, 4}, {2, 3, 4, 2}}},
        EllipsisCase{"...,...->...", "abc,abc->abc", {{2, 1, 3}, {4, 1}}, {{2, 4, 3}, {2, 4, 3}}},
        EllipsisCase{"...i,...i->", "abi,abi->", {{2, 1, 3}, {1, 4, 3}}, {{2, 4, 3}, {2, 4, 3}}},
        EllipsisCase{
            "...i,...,i...->...", "abi,ab,iab->ab", {{2, 3, 2}, {1}, {2, 2, 1}}, {{2, 3, 2}, {2, 3}, {2, 2, 3}}},
        EllipsisCase{"...i,...i->...i", "ai,ai->ai", {{1, 2}, {1, 2}}, {{1, 2}, {1, 2}}}));

TEST(EinsumOrder, TakesTheSmallestProductFirst) {
  // From left to right, the first product would have 2^34 elements.
  const std::int64_t n = std::int64_t{1} << 17;
  const Tensor u = normal({n}, 1), v = normal({n}, 2), x = normal({n}, 3);
  expect_close(einsum("i,j,j->i", {u, v, x}).value(), einsum("i,->i", {u, einsum("j,j->", {v, x})}).value(), 1e-11);
}

TEST(EinsumOrder, GivesTheSameBitsForAnyNumberOfThreads) {
  expect_same_bits_on_any_threads(
      [](auto x) { return einsum("...ij,jk,...kl->...il", x); },
      {normal({3, 65, 40}, 1, DType::f32), normal({40, 70}, 2, DType::f32), normal({3, 70, 33}, 3, DType::f32)});
}

TEST(EinsumEdges, EllipsesBroadcastToNothing) {
  EXPECT_EQ(einsum("...i,...i->...", {zeros({0, 3}), zeros({1, 3})}).shape(), (Shape{0}));
  expect_close(einsum("...i,...i->i", {ones({0, 3}), ones({1, 3})}).value(), zeros({3}));
  expect_close(einsum("i,ij,...j->i...", {ones({2}), ones({2, 0}), ones({3, 0})}).value(), zeros({2, 3}));
}

TEST(EinsumEdges, IgnoresSpaces) {
  const Tensor a = normal({2, 3}, 1), b = normal({3, 4}, 2);
  expect_close(einsum(" ij, jk -> ik", {a, b}).value(), einsum("ij,jk->ik", {a, b}).value());
}

TEST(EinsumEdges, TakesOperandsWithoutBraces) {
  const Tensor a = normal({2, 3}, 1), b = normal({3, 4}, 2);
  const Var c = normal({4}, 3);
  EXPECT_TRUE(identical(einsum("ij,jk,k->i", a, b, c).value(), einsum("ij,jk,k->i", {a, b, c}).value()));
  EXPECT_TRUE(identical(einsum("ij->ji", a).value(), einsum("ij->ji", {a}).value()));
}

TEST(EinsumEdges, WithoutAnArrowTheOutputHasTheLettersThatOccurOnce) {
  const Tensor a = normal({2, 3}, 1), b = normal({3, 2}, 2), c = normal({5, 2, 3}, 3);
  for (const auto& [text, meant] : {std::pair("ij,jk", "ij,jk->ik"), std::pair("zj,ja", "zj,ja->az"),
                                    std::pair("ij,ji", "ij,ji->"), std::pair("bA,Aa", "bA,Aa->ab")})
    expect_close(einsum(text, a, b).value(), einsum(meant, a, b).value());
  expect_close(einsum("ba", a).value(), transpose(a).value());
  expect_close(einsum("bB", a).value(), transpose(a).value());
  expect_close(einsum("b...a", c).value(), einsum("b...a->...ab", c).value());
  expect_close(einsum("...ij,jk", c, b).value(), einsum("...ij,jk->...ik", c, b).value());
  expect_close(einsum("ii", b.slice(0, 0, 2)).value(), einsum("ii->", b.slice(0, 0, 2)).value());
}

TEST(EinsumEdges, SumsOverNothingAreZero) {
  expect_close(einsum("ij,jk->ik", {zeros({2, 0}), zeros({0, 3})}).value(), zeros({2, 3}));
  expect_close(einsum("ij->i", {zeros({2, 0})}).value(), zeros({2}));
  EXPECT_EQ(einsum("ij,jk->ik", {zeros({0, 2}), zeros({2, 3})}).shape(), (Shape{0, 3}));
}

void expect_value_error(const char* text, const char* message) {
  EXPECT_THAT([&] { einsum(text, {zeros({2, 3})}); }, ThrowsMessage<ValueError>(message));
}

TEST(EinsumErrors, NameWhatIsNotUnderstood) {
  expect_value_error("ij-i", "einsum: 'ij-i' must name axes by letters but has '-'");
  expect_value_error("i1->i", "einsum: 'i1->i' must name axes by letters but has '1'");
  expect_value_error("..i->i", "einsum: '..i->i' must name axes by letters but has '.'");
  expect_value_error("...i->......i", "einsum: '...i->......i' must name axes by letters but has '.'");
  expect_value_error("ij->k", "einsum: output axis 'k' of 'ij->k' is in no operand");
  expect_value_error("ij->ii", "einsum: output axis 'i' of 'ij->ii' is given twice");
  expect_value_error("ij,jk->ik", "einsum: 'ij,jk->ik' names 2 operands but got 1");
}

TEST(EinsumErrors, CountOperands) {
  const Var x = zeros({2});
  EXPECT_THAT([] { einsum("->", std::span<const Var>()); },
              ThrowsMessage<ValueError>("einsum: there must be at least one operand"));
  EXPECT_THAT(
      [&] {
        einsum("i,i->i", {x, x, x});
      },
      ThrowsMessage<ValueError>("einsum: 'i,i->i' names 2 operands but got 3"));
}

TEST(EinsumErrors, RefuseProductsOfTooManyAxes) {
  const Var x = ones({1, 1, 1, 1, 1, 1, 1, 1});
  EXPECT_THAT(
      [&] {
        einsum("abcdefgh,abcdijkl,efghijkl->aei", {x, x, x});
      },
      ThrowsMessage<ValueError>("einsum: each product of two operands has more than 8 axes"));
}

TEST(EinsumErrors, NameTheOperandThatDoesNotFit) {
  EXPECT_THAT(
      [] {
        einsum("ij,jk->ik", {zeros({2, 3}), zeros({4, 5})});
      },
      ThrowsMessage<ShapeError>("einsum: axis 'j' has size 3 and, in operand 1 of shape [4, 5], size 4"));
  EXPECT_THAT(
      [] {
        einsum("ijk->i", {zeros({2, 3})});
      },
      ThrowsMessage<ShapeError>("einsum: operand 0 must have the axes 'ijk' but has shape [2, 3]"));
  EXPECT_THAT(
      [] {
        einsum("...ijk->i", {zeros({2, 3})});
      },
      ThrowsMessage<ShapeError>("einsum: operand 0 must have the axes '...ijk' but has shape [2, 3]"));
  EXPECT_THAT(
      [] {
        einsum("...i,...i->i", {zeros({2, 3}), zeros({4, 3})});
      },
      ThrowsMessage<ShapeError>("einsum: axis '...' has size 2 and, in operand 1 of shape [4, 3], size 4"));
  EXPECT_THAT(
      [] {
        einsum("i,i->i", {zeros({1}), zeros({2})});
      },
      ThrowsMessage<ShapeError>("einsum: axis 'i' has size 1 and, in operand 1 of shape [2], size 2"));
  EXPECT_THAT(
      [] {
        einsum("ii->i", {zeros({2, 3})});
      },
      ThrowsMessage<ShapeError>("einsum: axis 'i' has size 2 and, in operand 0 of shape [2, 3], size 3"));
  EXPECT_THAT(
      [] {
        einsum("i,i->i", {zeros({2}), zeros({2}, DType::f64)});
      },
      ThrowsMessage<DTypeError>("einsum: inputs must have the same dtype but have f32 and f64"));
}

}  // namespace
}  // namespace braid::op_tests::einsum_test
