#include <braid/dist/mpi/detail/plan.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

namespace braid::dist::detail {
namespace {

using nn::BlockRange;

/// A node of the tree over the blocks; ranks `first` to `last` compute its blocks.
struct Node {
  BlockRange blocks;
  int first, last;

  int height() const {
    return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(blocks.end - blocks.begin - 1)));
  }
  bool is_shared() const { return first < last; }
  bool has(int rank) const { return first <= rank && rank <= last; }
};

/// The location of a sum.
struct Place {
  int rank;
  std::size_t buffer;
};

/// The location of every sum on its way up the tree; it follows from the numbers of blocks and ranks alone.
class Routes {
 public:
  Routes(std::int64_t blocks, int ranks) : blocks_(blocks), ranks_(ranks) {
    std::vector<std::size_t> buffers(static_cast<std::size_t>(ranks), 0);
    const std::function<void(const Node&)> descend = [&](const Node& at) {
      if (!at.is_shared()) {
        buffer_of_[at.blocks.begin] = buffers[static_cast<std::size_t>(at.first)]++;
        return;
      }
      const auto [lower, upper] = below(at);
      descend(lower);
      descend(upper);
    };
    descend(root());
  }

  /// The shared nodes with blocks of a rank, from the root down.
  const std::vector<Node>& nodes(int rank) {
    const auto [entry, is_new] = nodes_.try_emplace(rank);
    if (!is_new) return entry->second;
    std::vector<Node>& list = entry->second;
    if (root().is_shared()) list.push_back(root());
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto [lower, upper] = below(list[i]);
      for (const Node& child : {lower, upper})
        if (child.is_shared() && child.has(rank)) list.push_back(child);
    }
    std::ranges::stable_sort(list, std::greater(), &Node::height);
    return list;
  }

  /// The addition of a chunk at a shared node: the sum at the first place is added to that at the second one, which is
  /// then the node's.
  std::pair<Place, Place> meeting(const Node& at, int chunk) const {
    const auto [own, other] = below(at, chunk);
    return {place(other, chunk), place(own, chunk)};
  }

  /// The location of a chunk's sum over the whole node.
  Place place(Node at, int chunk) const {
    while (at.is_shared()) at = below(at, chunk).first;
    return {at.first, buffer_of_.at(at.blocks.begin)};
  }

  /// Whether a rank receives the total of a chunk at this node. It may have sent sums of the chunk at several nodes.
  bool gets_total(int rank, const Node& at, int chunk) {
    for (const Node& node : nodes(rank))
      if (const auto [from, to] = meeting(node, chunk); from.rank == rank && to.rank != rank)
        return node.blocks == at.blocks;
    return false;
  }

  Node root() const { return node({0, blocks_}); }

 private:
  Node node(BlockRange blocks) const { return {blocks, rank_of(blocks.begin), rank_of(blocks.end - 1)}; }
  int rank_of(std::int64_t block) const { return static_cast<int>(((block + 1) * ranks_ - 1) / blocks_); }

  /// The two nodes below, as nn::place_in_tree splits a node.
  std::pair<Node, Node> below(const Node& at) const {
    const auto [begin, end] = at.blocks;
    const auto middle = begin + static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(end - begin - 1)));
    return {node({begin, middle}), node({middle, end})};
  }

  /// The same two, first that with the chunk's rank: the chunks of a node are assigned to its ranks in turn.
  std::pair<Node, Node> below(const Node& at, int chunk) const {
    const auto [lower, upper] = below(at);
    const bool low = chunk % (at.last - at.first + 1) <= lower.last - lower.first;
    return low ? std::pair(lower, upper) : std::pair(upper, lower);
  }

  std::int64_t blocks_;
  int ranks_;
  std::map<std::int64_t, std::size_t> buffer_of_;  // index among its rank's buffers, by the part's first block
  std::map<int, std::vector<Node>> nodes_;
};

/// The order of the chunks in a buffer: those with equal remainders modulo 2, 4, 8, .. are adjacent, so that for 2^k
/// ranks each message is one piece.
std::vector<int> chunks_in_order(int ranks) {
  const auto bits = static_cast<int>(std::bit_width(static_cast<unsigned>(ranks - 1)));
  const auto reversed = [bits](int chunk) {
    int result = 0;
    for (int bit = 0; bit < bits; ++bit) result |= (chunk >> bit & 1) << (bits - 1 - bit);
    return result;
  };
  std::vector<int> chunks(static_cast<std::size_t>(ranks));
  std::iota(chunks.begin(), chunks.end(), 0);
  std::ranges::sort(chunks, {}, reversed);
  return chunks;
}

/// Appends an item for the chunk at `position`, or extends the last item if it is equal and ends there.
template <class Item>
void append(std::vector<Item>& items, Item item, int position) {
  item.chunks = {position, position + 1};
  if (!items.empty() && items.back().chunks.end == position) {
    Item last = items.back();
    last.chunks = item.chunks;
    if (last == item) return void(++items.back().chunks.end);
  }
  items.push_back(item);
}

bool is_empty(const Stage& s) { return s.sends.empty() && s.receives.empty() && s.locals.empty(); }

}  // namespace

std::vector<Stage> plan(std::int64_t blocks, int ranks, int rank) {
  check_value(1 <= ranks && ranks <= blocks, "dist: {} blocks are too few for {} ranks", blocks, ranks);
  Routes routes(blocks, ranks);
  const std::vector<int> chunks = chunks_in_order(ranks);
  const int height = routes.root().height();
  std::vector<Stage> stages(2 * static_cast<std::size_t>(height) + 1);  // up from height 1, the root, down to height 1
  const auto middle = static_cast<std::size_t>(height);
  for (std::size_t i = middle; i < stages.size(); ++i) stages[i].adds = false;
  for (const Node& node : routes.nodes(rank)) {
    Stage& up = stages[static_cast<std::size_t>(node.height() - 1)];
    Stage& down = stages[static_cast<std::size_t>(2 * height - node.height() + 1)];
    for (int position = 0; position < ranks; ++position) {
      const int chunk = chunks[static_cast<std::size_t>(position)];
      const auto [from, to] = routes.meeting(node, chunk);
      if (from.rank != rank && to.rank != rank) continue;
      const bool returns = routes.gets_total(from.rank, node, chunk);
      if (from.rank == to.rank) {
        append(up.locals, {to.buffer, from.buffer}, position);
      } else if (from.rank == rank) {
        append(up.sends, {to.rank, from.buffer, to.buffer}, position);
        if (returns) append(down.receives, {to.rank}, position);
      } else {
        append(up.receives, {from.rank, to.buffer, from.buffer}, position);
        if (returns) append(down.sends, {from.rank}, position);
      }
    }
  }
  for (int position = 0; position < ranks; ++position)
    if (const Place total = routes.place(routes.root(), chunks[static_cast<std::size_t>(position)]);
        total.rank == rank && total.buffer != 0)
      append(stages[middle].locals, {0, total.buffer}, position);
  std::erase_if(stages, is_empty);
  return stages;
}

BlockRange share(std::int64_t blocks, int ranks, int rank) {
  return {blocks * rank / ranks, blocks * (rank + 1) / ranks};
}

}  // namespace braid::dist::detail
