#include <braid/nn/kv_cache.h>

#include <algorithm>
#include <cstring>

#include <braid/core/storage.h>

namespace braid::nn {
namespace {

/// Copies the positions [0, count) of each sequence to those from `position` on.
void copy_rows(const Tensor& from, std::int64_t count, Tensor& to, std::int64_t position) {
  const Tensor rows = from.contiguous();
  const auto row = static_cast<std::size_t>(to.size(2) * to.size(3)) * size_of(to.dtype());
  const auto bytes = [&](std::int64_t positions) { return static_cast<std::size_t>(positions) * row; };
  std::byte* out = to.mutable_bytes();
  for (std::int64_t b = 0; b < to.size(0); ++b)
    std::memcpy(out + bytes(b * to.size(1) + position), rows.bytes() + bytes(b * rows.size(1)), bytes(count));
}

/// Gives `all` room for `length` positions and storage of its own; keeps its first `kept` positions.
void make_room(Tensor& all, std::int64_t kept, std::int64_t length, const Tensor& like) {
  constexpr std::int64_t kFirst = 64;
  const std::int64_t room = all.defined() ? all.size(1) : 0;
  if (room >= length && all.unshared()) return;
  const BypassCache fresh_memory;  // no training step needs blocks of these sizes
  Tensor larger(like.shape().with(1, room >= length ? room : std::max({length, 2 * room, kFirst})), like.dtype());
  if (kept > 0) copy_rows(all, kept, larger, 0);
  all = larger;
}

}  // namespace

void LayerCache::write(std::int64_t position, const Tensor& keys, const Tensor& values) {
  for (const auto& [all, next] : {std::pair(&keys_, &keys), std::pair(&values_, &values)}) {
    make_room(*all, position, position + next->size(1), *next);
    copy_rows(*next, next->size(1), *all, position);
  }
}

Tensor LayerCache::rows(const Tensor& all, std::int64_t b, std::int64_t length) {
  return all.slice(0, b, b + 1).slice(1, 0, length);
}

}  // namespace braid::nn
