#include <braid/dist/mpi/detail/plan.h>

#include <bit>
#include <cmath>
#include <deque>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include <braid/core/random.h>

#include <tests/support.h>

namespace braid::dist::detail {
namespace {

/// All ranks of a plan in one process: their buffers of one number a chunk, and the messages under way.
class Simulation {
 public:
  Simulation(const std::vector<double>& blocks, int ranks) : ranks_(ranks) {
    const auto count = static_cast<std::int64_t>(blocks.size());
    for (int rank = 0; rank < ranks; ++rank) {
      plans_.push_back(plan(count, ranks, rank));
      nn::TreeSum<double> own(count);
      for (auto [block, end] = share(count, ranks, rank); block < end; ++block)
        own.add(block, blocks[static_cast<std::size_t>(block)]);
      auto& buffers = buffers_.emplace_back();
      for (const auto& [node, sum] : std::move(own).parts())
        buffers.push_back(std::vector<double>(static_cast<std::size_t>(ranks), sum));
    }
  }

  void run() {
    std::vector<std::size_t> stage(static_cast<std::size_t>(ranks_), 0);
    std::vector<bool> sent(static_cast<std::size_t>(ranks_), false);
    for (bool progress = true; progress;) {
      progress = false;
      for (int rank = 0; rank < ranks_; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        if (stage[r] == plans_[r].size()) continue;
        const Stage& now = plans_[r][stage[r]];
        if (!sent[r]) send(rank, now);
        sent[r] = true;
        if (!receive(rank, now)) continue;
        ++stage[r];
        sent[r] = false;
        progress = true;
      }
    }
    for (std::size_t r = 0; r < plans_.size(); ++r) EXPECT_EQ(stage[r], plans_[r].size()) << "rank " << r << " waits";
    for (const auto& [ways, queue] : under_way_) EXPECT_TRUE(queue.empty());
  }

  /// Every number that is the total on some rank.
  std::set<double> totals() const {
    std::set<double> all;
    for (const auto& buffers : buffers_) all.insert(buffers[0].begin(), buffers[0].end());
    return all;
  }

  std::size_t messages = 0;
  int chunks = 0;

 private:
  using Piece = std::vector<double>;

  static std::span<double> of(std::vector<double>& buffer, Chunks c) {
    return std::span(buffer).subspan(static_cast<std::size_t>(c.begin), static_cast<std::size_t>(c.end - c.begin));
  }

  void send(int rank, const Stage& stage) {
    for (const auto& m : stage.sends) {
      const auto piece = of(buffers_[static_cast<std::size_t>(rank)][m.mine], m.chunks);
      under_way_[{rank, m.peer}].push_back(Piece(piece.begin(), piece.end()));
      ++messages;
      chunks += m.chunks.end - m.chunks.begin;
    }
  }

  bool receive(int rank, const Stage& stage) {
    std::map<int, std::size_t> wanted;
    for (const auto& m : stage.receives) ++wanted[m.peer];
    for (const auto& [peer, count] : wanted)
      if (under_way_[{peer, rank}].size() < count) return false;
    auto& buffers = buffers_[static_cast<std::size_t>(rank)];
    for (const auto& m : stage.receives) {
      auto& queue = under_way_[{m.peer, rank}];
      const auto into = of(buffers[m.mine], m.chunks);
      EXPECT_EQ(queue.front().size(), into.size());
      for (std::size_t i = 0; i < into.size(); ++i)
        into[i] = stage.adds ? into[i] + queue.front()[i] : queue.front()[i];
      queue.pop_front();
    }
    for (const auto& local : stage.locals) {
      const auto into = of(buffers[local.into], local.chunks), from = of(buffers[local.from], local.chunks);
      for (std::size_t i = 0; i < into.size(); ++i) into[i] = stage.adds ? into[i] + from[i] : from[i];
    }
    return true;
  }

  int ranks_;
  std::vector<std::vector<Stage>> plans_;
  std::vector<std::vector<std::vector<double>>> buffers_;  // [rank][part][chunk]
  std::map<std::pair<int, int>, std::deque<Piece>> under_way_;
};

/// Numbers whose sum depends on the order of additions.
std::vector<double> numbers(std::int64_t count) {
  Rng rng(static_cast<std::uint64_t>(count));
  std::vector<double> list;
  for (std::int64_t i = 0; i < count; ++i) list.push_back((rng.uniform() - 0.5) * std::exp(20 * rng.uniform()));
  return list;
}

double tree_sum(const std::vector<double>& blocks) {
  nn::TreeSum<double> sum(static_cast<std::int64_t>(blocks.size()));
  for (std::size_t i = 0; i < blocks.size(); ++i) sum.add(static_cast<std::int64_t>(i), blocks[i]);
  return std::move(sum).total();
}

TEST(Plan, GivesEveryRankTheSumOfTheTreeForAnyNumberOfBlocksAndRanks) {
  for (std::int64_t blocks = 1; blocks <= 33; ++blocks)
    for (int ranks = 1; ranks <= blocks; ++ranks) {
      const std::vector<double> terms = numbers(blocks);
      Simulation simulation(terms, ranks);
      simulation.run();
      EXPECT_EQ(simulation.totals(), std::set{tree_sum(terms)}) << blocks << " blocks, " << ranks << " ranks";
    }
}

TEST(Plan, OfPowersOfTwoIsRecursiveHalvingAndDoubling) {
  for (const int ranks : {2, 4, 8, 16}) {
    Simulation simulation(numbers(16), ranks);
    simulation.run();
    const int stages = std::bit_width(static_cast<unsigned>(ranks - 1));
    EXPECT_EQ(simulation.messages, static_cast<std::size_t>(2 * stages * ranks));
    EXPECT_EQ(simulation.chunks, 2 * (ranks - 1) * ranks);  // the least that there can be
  }
}

TEST(Plan, OfOtherNumbersSendsLessThanThreeTimesTheLeast) {
  for (const int ranks : {3, 5, 6, 7, 12}) {
    Simulation simulation(numbers(64), ranks);
    simulation.run();
    EXPECT_LE(simulation.chunks, 5 * (ranks - 1) * ranks) << ranks << " ranks";
  }
}

TEST(Plan, SharesAreEvenAndInOrder) {
  EXPECT_EQ(share(8, 3, 0), (nn::BlockRange{0, 2}));
  EXPECT_EQ(share(8, 3, 1), (nn::BlockRange{2, 5}));
  EXPECT_EQ(share(8, 3, 2), (nn::BlockRange{5, 8}));
}

TEST(Plan, RejectsMoreRanksThanBlocks) {
  EXPECT_EQ(message_of([] { plan(4, 5, 0); }), "dist: 4 blocks are too few for 5 ranks");
  EXPECT_TRUE(plan(4, 1, 0).empty());
}

}  // namespace
}  // namespace braid::dist::detail
