#pragma once
#include <cstdint>
#include <vector>

#include <braid/dist/mpi/detail/messages.h>
#include <braid/dist/mpi/detail/plan.h>

namespace braid::dist::detail {

/// Tensors of one dtype that are summed over the ranks together: one where it is, or copies of several.
class Bucket {
 public:
  /// `tag` sets its messages apart from those of other buckets; `plan` must outlive it.
  Bucket(World& world, const std::vector<Stage>& plan, int tag)
      : world_(world), plan_(plan), tag_(tag), messages_(world) {}

  /// Their sums over the next one of the parts of the tree that this rank has.
  void add_part(std::vector<Tensor> tensors);

  /// Goes on as far as it can without waiting; true when all is done.
  bool advance();

  std::size_t stages_done() const { return stage_; }

  /// Their sums over all blocks.
  std::vector<Tensor> totals() const;

 private:
  void post();
  void finish();
  /// Elements [begin, end) of a buffer.
  std::pair<std::int64_t, std::int64_t> elements(Chunks chunks) const;
  std::size_t bytes(Chunks chunks) const;
  std::byte* at(std::size_t buffer, Chunks chunks);

  World& world_;
  const std::vector<Stage>& plan_;
  int tag_;
  Messages messages_;
  std::vector<Shape> shapes_;
  std::vector<Tensor> buffers_;   // contiguous, one for each part
  std::vector<Tensor> arriving_;  // what is to be added, one for each message
  std::size_t stage_ = 0;
  bool posted_ = false;
};

}  // namespace braid::dist::detail
