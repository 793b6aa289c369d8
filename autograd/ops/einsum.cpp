#include <braid/autograd/ops/einsum.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include <braid/autograd/ops/arithmetic.h>
#include <braid/autograd/ops/sum.h>
#include <braid/core/detail/contract.h>

namespace braid {
namespace {

using detail::align_to;
using detail::contains;
using detail::contract;
using detail::filter;
using detail::LabeledTensor;
using detail::sum_unshared;

/// The cotangent of x, whose product with `other` (nothing for one operand) gave y: dy and `other` contracted to x's
/// labels; those that only x has were summed over, so that the result is repeated along them.
Tensor vjp(const LabeledTensor& dy, const std::optional<LabeledTensor>& other, const std::string& labels,
           const Shape& shape) {
  const std::string known = dy.labels + (other ? other->labels : "");
  const std::string reached = filter(labels, [&](char c) { return contains(known, c); });
  const Tensor dx = other ? contract(dy, *other, reached) : align_to(dy, reached);
  return align_to({reached, dx}, labels).broadcast_to(shape);
}

/// The labels of the operands and of the output.
struct Summation {
  std::vector<std::string> operands;
  std::string out;
};

Summation parse(std::string_view text) {
  Summation parsed;
  const std::string compact = filter(std::string(text), [](char c) { return c != ' '; });
  const std::size_t arrow = compact.find("->");
  check_value(arrow != std::string::npos, "einsum: '{}' must name the output after ->", text);
  parsed.operands.emplace_back();
  for (const char c : compact.substr(0, arrow))
    if (c == ',')
      parsed.operands.emplace_back();
    else
      parsed.operands.back() += c;
  parsed.out = compact.substr(arrow + 2);
  std::string known;
  for (const std::string& letters : parsed.operands) known += letters;
  for (const char c : known + parsed.out)
    check_value(std::isalpha(static_cast<unsigned char>(c)) != 0, "einsum: '{}' must name axes by letters but has '{}'",
                text, c);
  check_value(parsed.out.size() <= Shape::kMaxRank, "einsum: the output '{}' must have at most {} axes", parsed.out,
              Shape::kMaxRank);
  for (const char c : parsed.out) {
    check_value(contains(known, c), "einsum: output axis '{}' of '{}' is in no operand", c, text);
    check_value(std::ranges::count(parsed.out, c) == 1, "einsum: output axis '{}' of '{}' is given twice", c, text);
  }
  return parsed;
}

void check_operands(std::string_view text, const Summation& parsed, std::span<const Var> operands) {
  check_value(operands.size() == 1 || operands.size() == 2, "einsum: expected 1 or 2 operands but got {}",
              operands.size());
  check_value(parsed.operands.size() == operands.size(), "einsum: '{}' names {} operands but got {}", text,
              parsed.operands.size(), operands.size());
  check_floating("einsum", operands[0].dtype());
  std::string seen;
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    check_same_dtype("einsum", operands[0].value(), operands[i].value());
    const std::string& letters = parsed.operands[i];
    check_shape(static_cast<int>(letters.size()) == operands[i].rank(),
                "einsum: operand {} must have the axes '{}' but has shape {}", i, letters, operands[i].shape());
    for (std::size_t axis = 0; axis < letters.size(); ++axis) {
      const std::int64_t size = operands[i].size(static_cast<int>(axis));
      const std::size_t before = seen.find(letters[axis]);
      check_shape(before == std::string::npos || sizes[before] == size,
                  "einsum: axis '{}' has size {} and, in operand {} of shape {}, size {}", letters[axis],
                  before == std::string::npos ? size : sizes[before], i, operands[i].shape(), size);
      seen += letters[axis];
      sizes.push_back(size);
    }
  }
}

/// x with each letter once: a repeated axis is multiplied by the identity matrix and summed over, which leaves the
/// diagonal.
Var take_diagonals(Var x, std::string& letters) {
  for (std::size_t axis = 0; axis < letters.size(); ++axis)
    for (std::size_t twin; (twin = letters.find(letters[axis], axis + 1)) != std::string::npos;
         letters.erase(twin, 1)) {
      Shape shape;
      for (int i = 0; i < x.rank(); ++i) shape = shape.inserted(i, 1);
      const std::int64_t n = x.size(static_cast<int>(axis));
      shape = shape.with(static_cast<int>(axis), n).with(static_cast<int>(twin), n);
      x = sum(x * eye(n, x.dtype()).reshape(shape), {static_cast<int>(twin)});
    }
  return x;
}

}  // namespace

Var einsum(std::string_view text, std::span<const Var> operands) {
  Summation parsed = parse(text);
  check_operands(text, parsed, operands);
  const std::string out = parsed.out;
  const Var x = take_diagonals(operands[0], parsed.operands[0]);
  const LabeledTensor a{parsed.operands[0], x.value()};
  if (operands.size() == 1) {
    return record("einsum", align_to(sum_unshared(a, out), out), {x},
                  [out, in = a.labels, shape = x.shape()](const Tensor& dy) {
                    return vjp({out, dy}, std::nullopt, in, shape);
                  });
  }
  const Var y = take_diagonals(operands[1], parsed.operands[1]);
  const LabeledTensor b{parsed.operands[1], y.value()};
  return record("einsum", contract(a, b, out), {x, y}, [out, a, b](const Tensor& dy, const Needs& needs) {
    return std::vector{needs[0] ? vjp({out, dy}, b, a.labels, a.tensor.shape()) : Tensor(),
                       needs[1] ? vjp({out, dy}, a, b.labels, b.tensor.shape()) : Tensor()};
  });
}

}  // namespace braid
