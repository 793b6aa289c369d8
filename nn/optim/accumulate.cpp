#include <braid/nn/optim/accumulate.h>

#include <bit>
#include <functional>

#include <braid/nn/optim/detail/multi_tensor.h>

namespace braid::nn {

std::optional<TreePlace> place_in_tree(std::int64_t blocks, BlockRange node) {
  std::optional<TreePlace> place;
  BlockRange at{0, blocks};
  while (at != node) {
    const std::int64_t size = at.end - at.begin;
    check_value(at.begin <= node.begin && node.begin < node.end && node.end <= at.end && size > 1,
                "TreeSum: [{}, {}) is no node of the tree over {} blocks", node.begin, node.end, blocks);
    const auto middle = at.begin + static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(size - 1)));
    const BlockRange lower{at.begin, middle}, upper{middle, at.end};
    const bool low = node.begin < middle;
    place = {at, low ? upper : lower};
    at = low ? lower : upper;
  }
  return place;
}

void add_in_place(std::span<Tensor* const> sums, std::span<const Tensor* const> terms) {
  check_shape(sums.size() == terms.size(), "add_in_place: {} sums need the same number of terms but there are {}",
              sums.size(), terms.size());
  std::vector<Tensor> contiguous;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    check_same_dtype("add_in_place", *sums[i], *terms[i]);
    check_shape(sums[i]->shape() == terms[i]->shape(),
                "add_in_place: term {} must have the shape {} of its sum but has {}", i, sums[i]->shape(),
                terms[i]->shape());
    contiguous.push_back(terms[i]->contiguous());
  }
  for (Tensor* sum : sums) make_writable(*sum);
  for_each_block("add_in_place", sums, std::identity(), [&]<class T>(T, const TensorBlock& block) {
    T* sum = sums[block.tensor]->mutable_data<T>();
    const T* term = contiguous[block.tensor].data<T>();
    for (std::int64_t i = block.begin; i < block.end; ++i) sum[i] += term[i];
  });
}

}  // namespace braid::nn
