#include <braid/core/detail/contract.h>

#include <array>
#include <vector>

#include <braid/core/map.h>
#include <braid/core/matmul.h>
#include <braid/core/reduce.h>

namespace braid::kernels {
namespace {

/// [.., i, .., j, .., k..] -> [.., i, j, k] with the axes of three groups of letters joined to one each.
Tensor joined(const Lettered& x, const std::array<std::string, 3>& groups) {
  const Tensor view = arranged(x, groups[0] + groups[1] + groups[2]);
  std::vector<std::int64_t> sizes;
  int first = 0;
  for (const std::string& group : groups) {
    const int last = first + static_cast<int>(group.size());
    sizes.push_back(view.shape().axes(first, last).numel());
    first = last;
  }
  return view.reshape(sizes);
}

Shape sizes_of(const std::string& letters, const Lettered& a, const Lettered& b) {
  std::vector<std::int64_t> sizes;
  for (const char c : letters) {
    const Lettered& owner = has(a.letters, c) ? a : b;
    sizes.push_back(owner.tensor.size(static_cast<int>(owner.letters.find(c))));
  }
  return Shape(sizes);
}

}  // namespace

Lettered sum_lonely(const Lettered& x, const std::string& kept) {
  Axes lonely;
  for (std::size_t axis = 0; axis < x.letters.size(); ++axis)
    if (!has(kept, x.letters[axis])) lonely.push_back(static_cast<int>(axis));
  if (lonely.empty()) return x;
  return {select(x.letters, [&](char c) { return has(kept, c); }), reduce_sum(x.tensor, lonely)};
}

Tensor arranged(const Lettered& x, const std::string& letters) {
  Axes order;
  for (const char c : letters)
    if (has(x.letters, c)) order.push_back(static_cast<int>(x.letters.find(c)));
  Tensor view = x.tensor.permute(order);
  for (std::size_t axis = 0; axis < letters.size(); ++axis)
    if (!has(x.letters, letters[axis])) view = view.expand_dims(static_cast<int>(axis));
  return view;
}

// Letters in both and in the output count matrices, those in both only are contracted.
Tensor contract(const Lettered& a_in, const Lettered& b_in, const std::string& out) {
  const Lettered a = sum_lonely(a_in, b_in.letters + out), b = sum_lonely(b_in, a_in.letters + out);
  const std::string shared = select(a.letters, [&](char c) { return has(b.letters, c); });
  const std::string batch = select(shared, [&](char c) { return has(out, c); });
  const std::string inner = select(shared, [&](char c) { return !has(out, c); });
  const std::string rows = select(a.letters, [&](char c) { return !has(shared, c); });
  const std::string columns = select(b.letters, [&](char c) { return !has(shared, c); });
  constexpr auto multiply = [](auto x, auto y) { return x * y; };
  if (inner.empty()) return map("einsum", multiply, arranged(a, out), arranged(b, out));
  if (rows.empty() && columns.empty()) {  // dot products: matrices of one element are not worth a call each
    const std::string all = out + inner;
    const Tensor products = map("einsum", multiply, arranged(a, all), arranged(b, all));
    return sum_lonely({all, products}, out).tensor;
  }
  const Tensor product = matrix_product(joined(a, {batch, rows, inner}), joined(b, {batch, inner, columns}));
  const std::string letters = batch + rows + columns;
  return arranged({letters, product.reshape(sizes_of(letters, a, b))}, out);
}

}  // namespace braid::kernels
