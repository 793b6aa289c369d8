#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include <braid/nn/optim/accumulate.h>

namespace braid::dist::detail {

/// Chunks [begin, end) of a buffer, which is cut into one chunk per rank.
struct Chunks {
  int begin = 0, end = 0;
  bool operator==(const Chunks&) const = default;
};

/// One step of a rank towards the sum over all blocks. A rank has one buffer per part of the tree that its own blocks
/// fill, in the order of nn::TreeSum::parts().
struct Stage {
  struct Message {
    int peer = 0;
    std::size_t mine = 0, theirs = 0;  ///< buffers of this rank and of the peer
    Chunks chunks = {};
    bool operator==(const Message&) const = default;
  };
  /// An addition or a copy from one buffer of this rank to another.
  struct Local {
    std::size_t into = 0, from = 0;
    Chunks chunks = {};
    bool operator==(const Local&) const = default;
  };
  std::vector<Message> sends = {}, receives = {};
  std::vector<Local> locals = {};  ///< done after the messages have arrived
  bool adds = true;                ///< received chunks are added; otherwise they replace those there
};

/// The stages of `rank` after which the first buffer of every rank has the sum over all blocks, added in the order of
/// nn::TreeSum. At each node, the ranks that have the two sums below it exchange: for each chunk, one sends its sum and
/// the other adds it; from the root down the totals return the same way. For 2^k ranks this is recursive halving and
/// doubling, nearest ranks first so that the tree does not depend on their number: 2 k messages per rank, which carry
/// 2 (1 - 2^-k) times the buffer. Other numbers of ranks send more, in smaller pieces. Throws ValueError unless
/// 1 <= ranks <= blocks.
std::vector<Stage> plan(std::int64_t blocks, int ranks, int rank);

/// The blocks that a rank computes: contiguous; the numbers of blocks of two ranks differ by at most one.
nn::BlockRange share(std::int64_t blocks, int ranks, int rank);

}  // namespace braid::dist::detail
