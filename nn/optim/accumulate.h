#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <braid/autograd/params.h>
#include <braid/nn/optim/clip.h>

namespace braid::nn {

/// Blocks [begin, end) of a batch.
struct BlockRange {
  std::int64_t begin = 0, end = 0;                      ///< the first block, and the one past the last
  auto operator<=>(const BlockRange&) const = default;  ///< by the first block, then by the end
};

/// The neighbors of a node in the summation tree.
struct TreePlace {
  BlockRange parent, sibling;  ///< the node above, and its other child
};

/// The tree over `blocks` blocks: `((0 + 1) + (2 + 3)) + ..`. A node of more than one block splits after the largest
/// power of two of blocks that is less than its size. nullopt for the root. Throws ValueError unless `node` is a node.
std::optional<TreePlace> place_in_tree(std::int64_t blocks, BlockRange node);

/// Adds each of `terms` to the sum of its shape at its position, in place unless the sum's storage is shared. Throws
/// ShapeError or DTypeError when they do not fit.
void add_in_place(std::span<Tensor* const> sums, std::span<const Tensor* const> terms);

/// `sum += term` as TreeSum does it: for numbers, modules of one structure (gradients, say), and pairs of these.
inline void add_to(double& sum, double term) { sum += term; }
template <Parametric M>
void add_to(M& sum, const M& term) {
  std::vector<Tensor*> sums;
  std::vector<const Tensor*> terms;
  for_each_param(sum, [&](const std::string&, Var& s) { sums.push_back(&s.mutable_value()); });
  for_each_param(term, [&](const std::string&, const Var& t) { terms.push_back(&t.value()); });
  add_in_place(sums, terms);
}
template <class A, class B>
void add_to(std::pair<A, B>& sum, const std::pair<A, B>& term) {
  add_to(sum.first, term.first);
  add_to(sum.second, term.second);
}

/// The sum over the blocks of a batch along one fixed binary tree: the same bits in whatever order the blocks are
/// added, and wherever nodes of the tree were summed before. A process that owns some of the blocks sums these, and
/// passes on `parts()`, the largest nodes of the tree that they fill. Of blocks added in order, it holds at most
/// log2(blocks) sums.
template <class T>
class TreeSum {
 public:
  /// Throws ValueError unless blocks >= 1.
  explicit TreeSum(std::int64_t blocks) : blocks_(blocks) {
    check_value(blocks >= 1, "TreeSum: blocks must be at least 1 but is {}", blocks);
  }

  void add(std::int64_t block, T value) { add({block, block + 1}, std::move(value)); }

  /// Adds the sum over a node of the tree. Throws ValueError unless it is a node whose blocks are all new.
  void add(BlockRange node, T value) {
    auto place = place_in_tree(blocks_, node);
    const auto after = parts_.lower_bound({node.end, node.end});  // the first that cannot overlap
    check_value(after == parts_.begin() || std::prev(after)->first.end <= node.begin,
                "TreeSum: blocks [{}, {}) must be new but some of them were added", node.begin, node.end);
    for (; place; place = place_in_tree(blocks_, node)) {
      const auto sibling = parts_.find(place->sibling);
      if (sibling == parts_.end()) break;
      add_to(sibling->second, value);  // either way round: addition commutes
      value = std::move(sibling->second);
      parts_.erase(sibling);
      node = place->parent;
    }
    parts_.emplace(node, std::move(value));
  }

  /// Whether all blocks have been added.
  bool complete() const { return parts_.contains({0, blocks_}); }

  /// The sum over all blocks. Throws Error unless all have been added.
  T total() && {
    check<Error>(complete(), "TreeSum: the sum over {} blocks is not complete", blocks_);
    return std::move(parts_.begin()->second);
  }

  /// The largest nodes that the added blocks fill, in order; the sum is empty afterwards.
  std::vector<std::pair<BlockRange, T>> parts() && {
    std::vector<std::pair<BlockRange, T>> list;
    for (auto& [node, sum] : std::exchange(parts_, {})) list.emplace_back(node, std::move(sum));
    return list;
  }

 private:
  std::int64_t blocks_;
  std::map<BlockRange, T> parts_;
};

/// Gradient accumulation: the mean over the blocks of a batch of `loss_and_grads(block)`, a pair as value_and_grad
/// returns it, added by a TreeSum. Needs at most log2(blocks) + 1 sets of gradients at a time.
///
/// The result depends on the batch and on the number of blocks, which is part of the configuration, and not on which
/// process computed which block. With one block it is `loss_and_grads(0)`. More blocks of equal size give the mean over
/// the batch with different rounding; a power of two of blocks with equal contents gives the bits of one. Throws
/// ValueError unless blocks >= 1.
auto accumulate(std::int64_t blocks, auto&& loss_and_grads) {
  TreeSum<decltype(loss_and_grads(std::int64_t{0}))> sum(blocks);
  for (std::int64_t block = 0; block < blocks; ++block) sum.add(block, loss_and_grads(block));
  auto mean = std::move(sum).total();
  if (blocks > 1) {
    mean.first /= static_cast<double>(blocks);
    scale_grads(mean.second, 1 / static_cast<double>(blocks));
  }
  return mean;
}

}  // namespace braid::nn
