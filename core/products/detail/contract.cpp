#include <braid/core/products/detail/contract.h>

#include <array>
#include <vector>

#include <braid/core/map.h>
#include <braid/core/products/matmul.h>
#include <braid/core/reduce.h>

namespace braid::detail {
namespace {

/// x with three axes: each holds the axes of one group of labels.
Tensor flatten_groups(const LabeledTensor& x, const std::array<std::string, 3>& groups) {
  const Tensor view = align_to(x, groups[0] + groups[1] + groups[2]);
  std::vector<std::int64_t> sizes;
  int first = 0;
  for (const std::string& group : groups) {
    const int last = first + static_cast<int>(group.size());
    sizes.push_back(view.shape().axes(first, last).numel());
    first = last;
  }
  return view.reshape(sizes);
}

Shape sizes_of(const std::string& labels, const LabeledTensor& a, const LabeledTensor& b) {
  std::vector<std::int64_t> sizes;
  for (const char c : labels) {
    const LabeledTensor& owner = contains(a.labels, c) ? a : b;
    sizes.push_back(owner.tensor.size(static_cast<int>(owner.labels.find(c))));
  }
  return Shape(sizes);
}

}  // namespace

LabeledTensor sum_unshared(const LabeledTensor& x, const std::string& shared) {
  Axes unshared;
  for (std::size_t axis = 0; axis < x.labels.size(); ++axis)
    if (!contains(shared, x.labels[axis])) unshared.push_back(static_cast<int>(axis));
  if (unshared.empty()) return x;
  return {filter(x.labels, [&](char c) { return contains(shared, c); }), reduce_sum(x.tensor, unshared)};
}

Tensor align_to(const LabeledTensor& x, const std::string& labels) {
  Axes order;
  for (const char c : labels)
    if (contains(x.labels, c)) order.push_back(static_cast<int>(x.labels.find(c)));
  Tensor view = x.tensor.permute(order);
  for (std::size_t axis = 0; axis < labels.size(); ++axis)
    if (!contains(x.labels, labels[axis])) view = view.expand_dims(static_cast<int>(axis));
  return view;
}

// Labels that are in both operands and in the output are batch axes of a matrix product; those in both only are
// contracted.
Tensor contract(const LabeledTensor& a_in, const LabeledTensor& b_in, const std::string& out) {
  const LabeledTensor a = sum_unshared(a_in, b_in.labels + out), b = sum_unshared(b_in, a_in.labels + out);
  const std::string shared = filter(a.labels, [&](char c) { return contains(b.labels, c); });
  const std::string batch = filter(shared, [&](char c) { return contains(out, c); });
  const std::string inner = filter(shared, [&](char c) { return !contains(out, c); });
  const std::string rows = filter(a.labels, [&](char c) { return !contains(shared, c); });
  const std::string columns = filter(b.labels, [&](char c) { return !contains(shared, c); });
  constexpr auto multiply = [](auto x, auto y) { return x * y; };
  if (inner.empty()) return map("einsum", multiply, align_to(a, out), align_to(b, out));
  if (rows.empty() && columns.empty()) {  // dot products: matrices of one element are not worth a call each
    const std::string all = out + inner;
    const Tensor products = map("einsum", multiply, align_to(a, all), align_to(b, all));
    return sum_unshared({all, products}, out).tensor;
  }
  const Tensor product =
      matrix_product(flatten_groups(a, {batch, rows, inner}), flatten_groups(b, {batch, inner, columns}));
  const std::string labels = batch + rows + columns;
  return align_to({labels, product.reshape(sizes_of(labels, a, b))}, out);
}

}  // namespace braid::detail
