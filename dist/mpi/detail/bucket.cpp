#include <braid/dist/mpi/detail/bucket.h>

#include <cstring>
#include <utility>

#include <braid/core/parallel.h>
#include <braid/nn/optim/detail/multi_tensor.h>

namespace braid::dist::detail {
namespace {

/// The tensors' elements, concatenated. A single tensor is not copied unless its storage is shared.
Tensor joined(std::vector<Tensor> tensors) {
  if (tensors.size() == 1) {
    Tensor only = std::move(tensors.front());
    nn::make_writable(only);
    return only;
  }
  std::int64_t size = 0;
  for (const Tensor& t : tensors) size += t.numel();
  Tensor all({size}, tensors.front().dtype());
  std::byte* to = all.mutable_bytes();
  for (const Tensor& t : tensors) {
    const Tensor from = t.contiguous();
    const std::size_t bytes = static_cast<std::size_t>(t.numel()) * size_of(t.dtype());
    if (bytes > 0) std::memcpy(to, from.bytes(), bytes);
    to += bytes;
  }
  return all;
}

/// `into += from`, element by element.
void add(DType dtype, std::byte* into, const std::byte* from, std::size_t bytes) {
  dispatch_float("dist", dtype, [&](auto zero) {
    using T = decltype(zero);
    T* sum = reinterpret_cast<T*>(into);
    const T* term = reinterpret_cast<const T*>(from);
    parallel_for(static_cast<std::int64_t>(bytes / sizeof(T)), 16384, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) sum[i] += term[i];
    });
  });
}

}  // namespace

Bucket::Bucket(World& world, const std::vector<Stage>& plan, int tag, std::vector<std::vector<Tensor>> parts)
    : world_(world), plan_(plan), tag_(tag) {
  for (const Tensor& t : parts.front()) shapes_.push_back(t.shape());
  for (std::vector<Tensor>& part : parts) buffers_.push_back(joined(std::move(part)));
}

bool Bucket::advance() {
  for (; stage_ < plan_.size(); ++stage_) {
    if (!std::exchange(posted_, true)) post();
    if (!arrived()) return false;
    finish();
    posted_ = false;
  }
  return true;
}

/// Starts the messages of a stage. Those with one tag between two ranks arrive in the order of sending.
void Bucket::post() {
  const Stage& stage = plan_[stage_];
  const auto request = [&] { return &requests_.emplace_back(MPI_REQUEST_NULL); };
  for (const Stage::Message& m : stage.receives) {
    const auto [begin, end] = elements(m.chunks);
    if (stage.adds) arriving_.emplace_back(Shape{end - begin}, buffers_[0].dtype());
    std::byte* into = stage.adds ? arriving_.back().mutable_bytes() : at(m.mine, m.chunks);
    post_pieces(into, bytes(m.chunks), [&](std::byte* piece, int count) {
      check_mpi(MPI_Irecv(piece, count, MPI_BYTE, m.peer, tag_, world_.comm, request()));
    });
  }
  for (const Stage::Message& m : stage.sends) {
    post_pieces(at(m.mine, m.chunks), bytes(m.chunks), [&](const std::byte* piece, int count) {
      check_mpi(MPI_Isend(piece, count, MPI_BYTE, m.peer, tag_, world_.comm, request()));
    });
    world_.traffic.bytes_sent += static_cast<double>(bytes(m.chunks));
  }
}

/// Whether all messages of the stage are complete. Does not wait.
bool Bucket::arrived() {
  int all = 0;
  check_mpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE));
  if (all != 0) requests_.clear();
  return all != 0;
}

void Bucket::finish() {
  const Stage& stage = plan_[stage_];
  const DType dtype = buffers_[0].dtype();
  for (std::size_t i = 0; i < arriving_.size(); ++i) {
    const auto& [peer, mine, theirs, chunks] = stage.receives[i];
    add(dtype, at(mine, chunks), arriving_[i].bytes(), bytes(chunks));
  }
  arriving_.clear();
  for (const auto& [into, from, chunks] : stage.locals) {
    if (stage.adds)
      add(dtype, at(into, chunks), at(from, chunks), bytes(chunks));
    else if (bytes(chunks) > 0)
      std::memcpy(at(into, chunks), at(from, chunks), bytes(chunks));
  }
}

std::vector<Tensor> Bucket::totals() const {
  if (shapes_.size() == 1) return {buffers_[0]};
  std::vector<Tensor> tensors;
  std::int64_t at = 0;
  for (const Shape& shape : shapes_) {
    tensors.push_back(buffers_[0].slice(0, at, at + shape.numel()).reshape(shape));
    at += shape.numel();
  }
  return tensors;
}

std::pair<std::int64_t, std::int64_t> Bucket::elements(Chunks chunks) const {
  const std::int64_t size = buffers_[0].numel(), ranks = world_.size;
  return {size * chunks.begin / ranks, size * chunks.end / ranks};
}

std::size_t Bucket::bytes(Chunks chunks) const {
  const auto [begin, end] = elements(chunks);
  return static_cast<std::size_t>(end - begin) * size_of(buffers_[0].dtype());
}

std::byte* Bucket::at(std::size_t buffer, Chunks chunks) {
  return buffers_[buffer].mutable_bytes() +
         static_cast<std::size_t>(elements(chunks).first) * size_of(buffers_[buffer].dtype());
}

}  // namespace braid::dist::detail
