#include <braid/autograd/ops/einsum.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <braid/autograd/ops/detail/composing.h>
#include <braid/autograd/ops/matmul.h>
#include <braid/autograd/ops/transpose.h>
#include <braid/core/map.h>
#include <braid/core/products/matmul.h>

namespace braid {
namespace {

/// An operand, or the product of some, with a different letter as label for each axis.
template <class X>
struct Labeled {
  std::string labels;
  X value;
};

using Term = Labeled<Var>;

Labeled<Tensor> value(const Term& x) { return {x.labels, x.value.value()}; }

bool contains(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

/// The labels that satisfy a condition, in order.
std::string filter(std::string labels, auto condition) {
  std::erase_if(labels, [&](char c) { return !condition(c); });
  return labels;
}

Tensor summed(const Tensor& x, const Axes& axes) { return reduce_sum(x, axes); }
Var summed(const Var& x, const Axes& axes) { return sum(x, axes); }

Tensor multiplied(const Tensor& a, const Tensor& b) { return matrix_product(a, b); }
Var multiplied(const Var& a, const Var& b) { return matmul(a, b); }

/// x summed over the axes that are not in `labels`, and the others in that order.
template <class X>
X gathered(const Labeled<X>& x, const std::string& labels) {
  Axes others, order;
  for (std::size_t axis = 0; axis < x.labels.size(); ++axis)
    if (!contains(labels, x.labels[axis])) others.push_back(static_cast<int>(axis));
  const std::string left = filter(x.labels, [&](char c) { return contains(labels, c); });
  for (const char c : labels) order.push_back(static_cast<int>(left.find(c)));
  return (others.empty() ? x.value : summed(x.value, others)).permute(order);
}

/// A view with the axes in the order of `labels`; axes that x does not have get size 1.
Tensor align_to(const Labeled<Tensor>& x, const std::string& labels) {
  Tensor view = gathered(x, filter(labels, [&](char c) { return contains(x.labels, c); }));
  for (std::size_t axis = 0; axis < labels.size(); ++axis)
    if (!contains(x.labels, labels[axis])) view = view.expand_dims(static_cast<int>(axis));
  return view;
}

/// The product of two terms as one of matrices: of axes in both and in `out`, in one and in `out`, and in both alone.
template <class X>
X contract(const Labeled<X>& x, const Labeled<X>& y, const std::string& out) {
  const auto common = [&](const auto& a, bool in_b, const auto& b, bool in_out) {
    return filter(a.labels, [&](char c) { return contains(b.labels, c) == in_b && contains(out, c) == in_out; });
  };
  const std::string batch = common(x, true, y, true), rows = common(x, false, y, true);
  const std::string columns = common(y, false, x, true), inner = common(x, true, y, false);
  const X a = gathered(x, batch + rows + inner), b = gathered(y, batch + inner + columns);
  if constexpr (std::is_same_v<X, Tensor>)
    if (inner.empty() || (rows.empty() && columns.empty())) {  // matrices of one element are not worth a call each
      const Tensor left = align_to({batch + rows + inner, a}, out + inner);
      const Tensor right = align_to({batch + inner + columns, b}, out + inner);
      return gathered<Tensor>({out + inner, map("einsum", std::multiplies(), left, right)}, out);
    }
  const int first = static_cast<int>(batch.size()), m = static_cast<int>(rows.size());
  const auto size = [](const X& t, int from, int to) { return t.shape().axes(from, to).numel(); };
  const std::int64_t count = size(a, 0, first), depth = size(a, first + m, a.rank());
  const int k = first + static_cast<int>(inner.size());
  const X product =
      multiplied(a.reshape({count, size(a, first, first + m), depth}), b.reshape({count, depth, size(b, k, b.rank())}));
  const Shape shape = a.shape().axes(0, first + m).concat(b.shape().axes(k, b.rank()));
  return gathered<X>({batch + rows + columns, product.reshape(shape)}, out);
}

/// The cotangent of x, whose product with `other` (nothing for one operand) gave y: dy and `other` contracted to x's
/// labels; those that only x has were summed over, so that the result is repeated along them.
Tensor vjp(const Labeled<Tensor>& dy, const std::optional<Labeled<Tensor>>& other, const std::string& labels,
           const Shape& shape) {
  const std::string known = dy.labels + (other ? other->labels : "");
  const std::string reached = filter(labels, [&](char c) { return contains(known, c); });
  const Tensor dx = other ? contract(dy, *other, reached) : align_to(dy, reached);
  return align_to({reached, dx}, labels).broadcast_to(shape);
}

Var sum_and_permute(const Term& x, const std::string& out) {
  if (Composed::active()) return gathered(x, out);
  return record("einsum", gathered(value(x), out), {x.value},
                [out, labels = x.labels, shape = x.value.shape()](const Tensor& dy) {
                  return vjp({out, dy}, std::nullopt, labels, shape);
                });
}

Term product(const Term& x, const Term& y, const std::string& out) {
  if (Composed::active()) return {out, contract(x, y, out)};
  const Labeled<Tensor> a = value(x), b = value(y);
  return {out,
          record("einsum", contract(a, b, out), {x.value, y.value}, [out, a, b](const Tensor& dy, const Needs& needs) {
            return std::array{needs[0] ? vjp({out, dy}, b, a.labels, a.value.shape()) : Tensor(),
                              needs[1] ? vjp({out, dy}, a, b.labels, b.value.shape()) : Tensor()};
          })};
}

constexpr std::string_view kEllipsis = "...", kEllipsisLabels = "01234567";  // the last label is that of the last axis
static_assert(kEllipsisLabels.size() == Shape::kMaxRank);

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

/// `letters` with the labels of the last `axes` axes of an ellipsis in its place.
std::string expand(std::string letters, std::size_t axes) {
  if (const std::size_t at = letters.find(kEllipsis); at != std::string::npos)
    letters.replace(at, kEllipsis.size(), kEllipsisLabels.substr(kEllipsisLabels.size() - axes));
  return letters;
}

/// The letters of the operands and of the output, each with an ellipsis or without.
struct Summation {
  std::vector<std::string> operands;
  std::string out;
};

/// The output of a sum that names none.
std::string implied_output(const std::string& operands) {
  std::string once = filter(operands, [&](char c) { return is_letter(c) && std::ranges::count(operands, c) == 1; });
  std::ranges::sort(once);
  return (operands.find(kEllipsis) == std::string::npos ? "" : std::string(kEllipsis)) + once;
}

Summation parse(std::string_view text) {
  Summation parsed;
  const std::string compact = filter(std::string(text), [](char c) { return c != ' '; });
  const std::size_t arrow = compact.find("->");
  const std::string inputs = compact.substr(0, arrow);
  for (std::size_t begin = 0, end = 0; begin <= inputs.size(); begin = end + 1) {
    end = std::min(inputs.find(',', begin), inputs.size());
    parsed.operands.push_back(inputs.substr(begin, end - begin));
  }
  parsed.out = arrow == std::string::npos ? implied_output(compact) : compact.substr(arrow + 2);
  for (std::size_t i = 0; i <= parsed.operands.size(); ++i) {
    const std::string letters = expand(i < parsed.operands.size() ? parsed.operands[i] : parsed.out, 0);
    const auto other = std::ranges::find_if_not(letters, is_letter);
    check_value(other == letters.end(), "einsum: '{}' must name axes by letters but has '{}'", text,
                other == letters.end() ? ' ' : *other);
  }
  for (const char c : filter(parsed.out, is_letter)) {
    check_value(contains(inputs, c), "einsum: output axis '{}' of '{}' is in no operand", c, text);
    check_value(std::ranges::count(parsed.out, c) == 1, "einsum: output axis '{}' of '{}' is given twice", c, text);
  }
  return parsed;
}

/// Replaces each ellipsis by one label for each axis of its operand that has no letter.
void expand_ellipses(Summation& parsed, std::span<const Var> operands) {
  std::size_t most = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    std::string& letters = parsed.operands[i];
    const std::size_t rank = operands[i].rank(), named = expand(letters, 0).size();
    const bool open = named < letters.size();
    check_shape(open ? named <= rank : named == rank, "einsum: operand {} must have the axes '{}' but has shape {}", i,
                letters, operands[i].shape());
    letters = expand(letters, rank - named);
    most = std::max(most, rank - named);
  }
  parsed.out = expand(parsed.out, most);
  check_value(parsed.out.size() <= Shape::kMaxRank, "einsum: the output '{}' must have at most {} axes", parsed.out,
              Shape::kMaxRank);
}

using Sizes = std::map<char, std::int64_t>;

/// The size of each label. Those of an ellipsis broadcast.
Sizes sizes_of(const Summation& parsed, std::span<const Var> operands) {
  Sizes sizes;
  for (std::size_t i = 0; i < operands.size(); ++i)
    for (std::size_t axis = 0; axis < parsed.operands[i].size(); ++axis) {
      const char label = parsed.operands[i][axis];
      const std::int64_t size = operands[i].size(static_cast<int>(axis));
      std::int64_t& known = sizes.try_emplace(label, size).first->second;
      check_shape(known == size || (!is_letter(label) && (known == 1 || size == 1)),
                  "einsum: axis '{}' has size {} and, in operand {} of shape {}, size {}",
                  is_letter(label) ? std::string(1, label) : std::string(kEllipsis), known, i, operands[i].shape(),
                  size);
      if (known == 1) known = size;
    }
  return sizes;
}

/// x without the axes along which it broadcasts.
Term squeeze_broadcast(Term x, const Sizes& sizes) {
  for (int axis = x.value.rank() - 1; axis >= 0; --axis)
    if (x.value.size(axis) != sizes.at(x.labels[static_cast<std::size_t>(axis)])) {
      x.value = squeeze(x.value, axis);
      x.labels.erase(static_cast<std::size_t>(axis), 1);
    }
  return x;
}

/// x with each letter once: multiplied by the identity and summed, a repeated axis becomes its diagonal.
Term take_diagonals(Term x) {
  for (std::size_t axis = 0; axis < x.labels.size(); ++axis)
    for (std::size_t repeated; (repeated = x.labels.find(x.labels[axis], axis + 1)) != std::string::npos;
         x.labels.erase(repeated, 1)) {
      std::vector<std::int64_t> shape(x.labels.size(), 1);
      shape[axis] = shape[repeated] = x.value.size(static_cast<int>(axis));
      x.value = sum(x.value * eye(shape[axis], x.value.dtype()).reshape(shape), {static_cast<int>(repeated)});
    }
  return x;
}

/// The labels that the product of two terms must keep, since the output or another term has them.
std::string kept_labels(const std::vector<Term>& terms, std::size_t i, std::size_t j, const std::string& out) {
  std::string wanted = out;
  for (std::size_t other = 0; other < terms.size(); ++other)
    if (other != i && other != j) wanted += terms[other].labels;
  const std::string& a = terms[i].labels;
  const std::string both = a + filter(terms[j].labels, [&](char c) { return !contains(a, c); });
  return filter(both, [&](char c) { return contains(wanted, c); });
}

/// Puts the product with the fewest elements in the place of its factors.
void contract_smallest_pair(std::vector<Term>& terms, const std::string& out, const Sizes& sizes) {
  std::size_t first = 0, second = 0;
  double fewest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < terms.size(); ++i)
    for (std::size_t j = i + 1; j < terms.size(); ++j) {
      const std::string kept = kept_labels(terms, i, j, out);
      double elements = 1;
      for (const char c : kept) elements *= static_cast<double>(sizes.at(c));
      if (kept.size() <= Shape::kMaxRank && elements < fewest) first = i, second = j, fewest = elements;
    }
  check_value(second > 0, "einsum: each product of two operands has more than {} axes", Shape::kMaxRank);
  const std::string kept = terms.size() == 2 ? out : kept_labels(terms, first, second, out);
  terms[first] = product(terms[first], terms[second], kept);
  terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(second));
}

}  // namespace

Var einsum(std::string_view text, List<Var> operands) {
  check_value(!operands.empty(), "einsum: there must be at least one operand");
  if (operands[0].dtype() == DType::bf16) {
    std::vector<Var> wide;
    for (const Var& x : operands) wide.push_back(detail::widened(x));
    return cast(einsum(text, wide), DType::bf16);
  }
  Summation parsed = parse(text);
  check_value(parsed.operands.size() == operands.size(), "einsum: '{}' names {} operands but got {}", text,
              parsed.operands.size(), operands.size());
  check_floating("einsum", operands[0].dtype());
  for (const Var& x : operands) check_same_dtype("einsum", operands[0].value(), x.value());
  expand_ellipses(parsed, operands);
  const Sizes sizes = sizes_of(parsed, operands);
  std::vector<Term> terms;
  for (std::size_t i = 0; i < operands.size(); ++i)
    terms.push_back(take_diagonals(squeeze_broadcast({parsed.operands[i], operands[i]}, sizes)));
  if (terms.size() == 1) return sum_and_permute(terms[0], parsed.out);
  while (terms.size() > 1) contract_smallest_pair(terms, parsed.out, sizes);
  return terms[0].value;
}

}  // namespace braid
