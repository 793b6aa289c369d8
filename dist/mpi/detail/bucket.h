#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <braid/core/detail/indexing.h>
#include <braid/core/parallel.h>
#include <braid/dist/mpi/detail/plan.h>
#include <braid/dist/mpi/detail/world.h>
#include <braid/nn/optim/detail/multi_tensor.h>

namespace braid::dist::detail {

/// Tensors of one dtype that are summed over the ranks together: one tensor in place, or copies of several.
class Bucket {
 public:
  /// `tag` distinguishes its messages from those of other buckets; `plan` must outlive it. `parts` are the tensors'
  /// sums over each part of the tree that this rank has summed.
  Bucket(World& world, const std::vector<Stage>& plan, int tag, std::vector<std::vector<Tensor>> parts)
      : world_(world), plan_(plan), tag_(tag) {
    for (const Tensor& t : parts.front()) shapes_.push_back(t.shape());
    for (std::vector<Tensor>& part : parts) buffers_.push_back(joined(std::move(part)));
  }

  /// Continues as far as possible without waiting; returns true when the totals are complete.
  bool advance() {
    for (; stage_ < plan_.size(); ++stage_) {
      if (!std::exchange(posted_, true)) post();
      if (!arrived()) return false;
      finish();
      posted_ = false;
    }
    return true;
  }

  std::size_t stages_done() const { return stage_; }

  /// The tensors' sums over all blocks.
  std::vector<Tensor> totals() const {
    if (shapes_.size() == 1) return {buffers_[0]};
    std::vector<Tensor> tensors;
    std::int64_t at = 0;
    for (const Shape& shape : shapes_) {
      tensors.push_back(buffers_[0].slice(0, at, at + shape.numel()).reshape(shape));
      at += shape.numel();
    }
    return tensors;
  }

 private:
  /// The tensors' elements, concatenated. A single tensor is not copied unless its storage is shared.
  static Tensor joined(std::vector<Tensor> tensors) {
    if (tensors.size() == 1) {
      Tensor only = std::move(tensors.front());
      nn::make_writable(only);
      return only;
    }
    std::int64_t size = 0, begin = 0;
    for (const Tensor& t : tensors) size += t.numel();
    Tensor all({size}, tensors.front().dtype());
    for (const Tensor& t : tensors) {
      braid::detail::write_slice(all, 0, begin, t.reshape({t.numel()}));
      begin += t.numel();
    }
    return all;
  }

  /// `into += from`, element by element.
  static void add(DType dtype, std::span<std::byte> into, const std::byte* from) {
    dispatch_float("dist", dtype, [&]<class T>(T) {
      T* sum = reinterpret_cast<T*>(into.data());
      const T* term = reinterpret_cast<const T*>(from);
      braid::detail::parallel_for_each(static_cast<std::int64_t>(into.size() / sizeof(T)), 1, 16384,
                                       [=](std::int64_t i) { sum[i] += term[i]; });
    });
  }

  /// Starts the messages of a stage. Those with one tag between two ranks arrive in the order of sending.
  void post() {
    const Stage& stage = plan_[stage_];
    const auto request = [&] { return &requests_.emplace_back(MPI_REQUEST_NULL); };
    for (const Stage::Message& m : stage.receives) {
      const std::span<std::byte> mine = bytes(m.mine, m.chunks);
      const DType dtype = buffers_[0].dtype();
      if (stage.adds) arriving_.emplace_back(Shape{static_cast<std::int64_t>(mine.size() / size_of(dtype))}, dtype);
      std::byte* into = stage.adds ? arriving_.back().mutable_bytes() : mine.data();
      post_pieces(into, mine.size(), [&](std::byte* piece, int count) {
        check_mpi(MPI_Irecv(piece, count, MPI_BYTE, m.peer, tag_, world_.comm, request()));
      });
    }
    for (const Stage::Message& m : stage.sends) {
      const std::span<const std::byte> mine = bytes(m.mine, m.chunks);
      post_pieces(mine.data(), mine.size(), [&](const std::byte* piece, int count) {
        check_mpi(MPI_Isend(piece, count, MPI_BYTE, m.peer, tag_, world_.comm, request()));
      });
      world_.traffic.bytes_sent += static_cast<double>(mine.size());
    }
  }

  /// Whether all messages of the stage are complete. Does not wait.
  bool arrived() {
    int all = 0;
    check_mpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE));
    if (all != 0) requests_.clear();
    return all != 0;
  }

  void finish() {
    const Stage& stage = plan_[stage_];
    const DType dtype = buffers_[0].dtype();
    for (std::size_t i = 0; i < arriving_.size(); ++i) {
      const auto& [peer, mine, theirs, chunks] = stage.receives[i];
      add(dtype, bytes(mine, chunks), arriving_[i].bytes());
    }
    arriving_.clear();
    for (const auto& [into, from, chunks] : stage.locals) {
      const std::span<std::byte> sum = bytes(into, chunks), term = bytes(from, chunks);
      if (stage.adds)
        add(dtype, sum, term.data());
      else
        std::ranges::copy(term, sum.begin());
    }
  }

  /// The part of a buffer that the chunks cover.
  std::span<std::byte> bytes(std::size_t buffer, Chunks chunks) {
    Tensor& all = buffers_[buffer];
    std::byte* first = all.mutable_bytes();
    const auto up_to = [&](int chunk) {
      return static_cast<std::size_t>(all.numel() * chunk / world_.size) * size_of(all.dtype());
    };
    return {first + up_to(chunks.begin), first + up_to(chunks.end)};
  }

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
