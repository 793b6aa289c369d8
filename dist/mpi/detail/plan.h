#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include <braid/nn/optim/accumulate.h>

namespace braid::dist::detail {

/// Chunks [begin, end) of a buffer, of which there are as many as ranks.
struct Chunks {
  int begin = 0, end = 0;
  bool operator==(const Chunks&) const = default;
};

/// What a rank does next to have the sum over all blocks. It has one buffer for each part of the tree that its own
/// blocks fill, in the order of nn::TreeSum::parts().
struct Stage {
  struct Message {
    int peer = 0;
    std::size_t mine = 0, theirs = 0;  ///< buffers
    Chunks chunks = {};
    bool operator==(const Message&) const = default;
  };
  /// From one buffer of this rank to another.
  struct Local {
    std::size_t into = 0, from = 0;
    Chunks chunks = {};
    bool operator==(const Local&) const = default;
  };
  std::vector<Message> sends = {}, receives = {};
  std::vector<Local> locals = {};  ///< when the messages are through
  bool adds = true;                ///< what comes is added to what is there; else it takes its place
};

/// What `rank` does so that in the end the first buffer of every rank has the sum over all blocks, added along the tree
/// of nn::TreeSum. At each node the ranks with the sums below it meet: of a chunk, one sends its sum, the other adds;
/// from the root down the totals go back the same ways. For 2^k ranks this is recursive halving and doubling, nearest
/// ranks first so that the tree does not depend on their number: 2 k messages, 2 (1 - 2^-k) of a buffer. Other numbers
/// of ranks send more, in smaller pieces. Throws ValueError unless 1 <= ranks <= blocks.
std::vector<Stage> plan(std::int64_t blocks, int ranks, int rank);

/// The blocks that a rank computes: contiguous, and as many as any other rank's, or one less.
nn::BlockRange share(std::int64_t blocks, int ranks, int rank);

}  // namespace braid::dist::detail
