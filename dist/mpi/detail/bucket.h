#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include <braid/dist/mpi/detail/plan.h>
#include <braid/dist/mpi/detail/world.h>

namespace braid::dist::detail {

/// Tensors of one dtype that are summed over the ranks together: one tensor in place, or copies of several.
class Bucket {
 public:
  /// `tag` distinguishes its messages from those of other buckets; `plan` must outlive it. `parts` are the tensors'
  /// sums over each part of the tree that this rank has summed.
  Bucket(World& world, const std::vector<Stage>& plan, int tag, std::vector<std::vector<Tensor>> parts);

  /// Continues as far as possible without waiting; returns true when the totals are complete.
  bool advance();

  std::size_t stages_done() const { return stage_; }

  /// The tensors' sums over all blocks.
  std::vector<Tensor> totals() const;

 private:
  void post();
  bool arrived();
  void finish();
  /// The part of a buffer that the chunks cover.
  std::span<std::byte> bytes(std::size_t buffer, Chunks chunks);

  World& world_;
  const std::vector<Stage>& plan_;
  int tag_;
  std::vector<Shape> shapes_;
  std::vector<Tensor> buffers_;        // contiguous, one per part
  std::vector<Tensor> arriving_;       // terms to be added, one per message
  std::vector<MPI_Request> requests_;  // until they are complete, what is sent must not change
  std::size_t stage_ = 0;
  bool posted_ = false;
};

}  // namespace braid::dist::detail
