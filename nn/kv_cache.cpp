#include <braid/nn/kv_cache.h>

#include <cstring>

#include <braid/core/error.h>
#include <braid/core/storage.h>

namespace braid::nn {
namespace {

/// Copies the positions [begin, begin + count) of each sequence to those from `position` on, also within one tensor.
void copy_rows(const Tensor& from, std::int64_t begin, std::int64_t count, Tensor& to, std::int64_t position) {
  const auto row = static_cast<std::size_t>(to.size(2) * to.size(3)) * size_of(to.dtype());
  const auto bytes = [&](std::int64_t positions) { return static_cast<std::size_t>(positions) * row; };
  std::byte* out = to.mutable_bytes();
  for (std::int64_t b = 0; b < to.size(0); ++b)
    std::memmove(out + bytes(b * to.size(1) + position), from.bytes() + bytes(b * from.size(1) + begin), bytes(count));
}

/// Drops the first `dropped` positions of `all`, keeps the next `kept`, and gives it room for `length` positions and
/// storage of its own.
void make_room(Tensor& all, std::int64_t dropped, std::int64_t kept, std::int64_t length, const Tensor& like) {
  constexpr std::int64_t kFirst = 64;
  const std::int64_t room = all.defined() ? all.size(1) : 0;
  const bool fits = room >= length && (dropped == 0 || room <= 4 * length);  // else a window has shrunk
  if (fits && all.unshared()) {
    if (dropped > 0) copy_rows(all, dropped, kept, all, 0);
    return;
  }
  const BypassCache fresh_memory;  // no training step needs blocks of these sizes
  Tensor larger(like.shape().with(1, fits ? room : std::max({length, 2 * std::min(room, length), kFirst})),
                like.dtype());
  if (kept > 0) copy_rows(all, dropped, kept, larger, 0);
  all = larger;
}

}  // namespace

void PositionCache::check(std::int64_t position, std::int64_t window) const {
  check_value(0 <= position && position <= end_,
              "PositionCache: position must be in [0, {}], up to what was read, but is {}", end_, position);
  const std::int64_t seen = detail::first_seen(position, window);
  check_value(first_ <= seen / detail::kKeyBlock * detail::kKeyBlock || position == 0,
              "PositionCache: position {} sees positions from {} on but those before {} have been forgotten", position,
              seen, first_);
}

void PositionCache::write(std::int64_t position, const Tensor& keys, const Tensor& values, std::int64_t window) {
  check(position, window);
  // Whole blocks are dropped, so that no bit changes.
  const std::int64_t first = detail::first_seen(position, window) / detail::kKeyBlock * detail::kKeyBlock;
  if (position == 0) first_ = 0;
  for (const auto& [all, next] : {std::pair(&keys_, &keys), std::pair(&values_, &values)}) {
    if (!next->defined()) continue;
    const bool alike =
        all->defined() && all->dtype() == next->dtype() && all->shape().with(1, 0) == next->shape().with(1, 0);
    check_shape(alike || position == 0, "PositionCache: {} {} do not continue {} {}", next->shape(),
                name(next->dtype()), all->shape(), name(all->dtype()));
    if (!alike) *all = Tensor();
    make_room(*all, first - first_, position - first, position + next->size(1) - first, *next);
    copy_rows(next->contiguous(), 0, next->size(1), *all, position - first);
  }
  first_ = first, end_ = position + keys.size(1);
}

}  // namespace braid::nn
