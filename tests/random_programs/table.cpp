#include <tests/random_programs/table.h>

#include <tests/random_programs/check.h>

#include <algorithm>
#include <iterator>

namespace braid::programs {

std::span<const Op> all_ops() {
  static const std::vector<Op> all = [] {
    std::vector<Op> ops;
    for (const auto& group :
         {elementwise_ops, reduction_ops, product_ops, shape_ops, indexing_ops, fused_ops, mixing_ops, stream_ops})
      std::ranges::move(group(), std::back_inserter(ops));
    return ops;
  }();
  return all;
}

bool has_axes(const Shape& shape) { return shape.rank() > 0; }
bool not_empty(const Shape& shape) { return shape.numel() > 0; }
Fits of_rank(int rank) {
  return [=](const Shape& shape) { return shape.rank() == rank; };
}
Fits at_least_rank(int rank) {
  return [=](const Shape& shape) { return shape.rank() >= rank; };
}

Operands one(Fits fits) {
  return [=](Builder& b) { return std::vector{b.any(fits)}; };
}

Operands one_within(double limit, Fits fits) {
  return [=](Builder& b) { return std::vector{b.bounded(b.any(fits), limit)}; };
}

Operands positive() {
  return [](Builder& b) { return std::vector{b.positive(b.any())}; };
}

std::vector<int> pair(Builder& b) {
  const int x = b.any();
  Shape shape = b.shape(x);
  while (shape.rank() > 0 && b.rng().below(3) == 0) shape = shape.without(0);
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (b.rng().below(3) == 0) shape = shape.with(axis, 1);
  const int y = b.of_shape(shape);
  return b.rng().below(2) == 0 ? std::vector{x, y} : std::vector{y, x};
}

std::optional<Settings> none(Shapes, Rng&) { return Settings{}; }

Setting axis_of(const Shape& shape, Rng& rng) { return integer(rng.below(2 * shape.rank()) - shape.rank()); }

std::vector<std::int64_t> some_axes(const Shape& shape, Rng& rng) {
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (rng.below(2) == 0) axes.push_back(rng.below(2) == 0 ? axis : axis - shape.rank());
  return axes;
}

double pick(std::initializer_list<double> values, Rng& rng) {
  return values.begin()[rng.below(static_cast<std::int64_t>(values.size()))];
}

Setting form(Rng& rng) { return rng.below(4) == 0 ? Setting{"composed", 1} : Setting{"fused", 0}; }

Var in_form(const Setting& form, const std::function<Var()>& f) { return form.number == 0 ? fused(f) : composed(f); }

Setting number(Rng& rng) { return real(static_cast<double>(rng.below(17) - 8) / 8); }

}  // namespace braid::programs
