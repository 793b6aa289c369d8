#include <braid/mhc/kernels/read_write.h>

#include <braid/mhc/kernels/tiles.h>

#define HWY_TARGET_INCLUDE "braid/mhc/kernels/read_write.cpp"
#include <hwy/foreach_target.h>

#include <braid/core/kernels/dispatch-inl.h>
#include <braid/mhc/kernels/inner_products-inl.h>
#include <braid/mhc/kernels/mix-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {
namespace {

template <class T>
void read_tile(const StreamRead<T>& c, std::int64_t begin, std::int64_t end) {
  const auto [tokens, n, channels] = c.sizes;
  for (std::int64_t t = begin; t < end; ++t) {
    const T* x = c.x + t * n * channels;
    mix(1, n, channels, {c.h_pre.at(t), 0, 1}, x, {}, c.u + t * channels);
  }
}

template <class T>
void write_tile(const StreamWrite<T>& c, std::int64_t begin, std::int64_t end) {
  const auto [tokens, n, channels] = c.sizes;
  const std::int64_t width = n * channels;
  const Store where = store_for(c.y, tokens * width, channels);
  for (std::int64_t t = begin; t < end; ++t) {
    const T* x = c.x + t * width;
    mix_to(where, n, n, channels, {c.h_res.at(t), n, 1}, x, {c.h_post.at(t), c.f + t * channels}, c.y + t * width);
  }
  hwy::FlushStream();
}

template <class T>
T* at(T* data, std::int64_t offset) {
  return data == nullptr ? nullptr : data + offset;
}

template <class T>
void vjp_tile(const StreamVjp<T>& c, std::int64_t begin, std::int64_t end) {
  const auto [tokens, n, channels] = c.sizes;
  const std::int64_t width = n * channels;
  const Store where = store_for(c.dx, tokens * width, channels);
  for (std::int64_t t = begin; t < end; ++t) {
    const T *du = at(c.du, t * channels), *dy = at(c.dy, t * width), *x = at(c.x, t * width);
    prefetch(at(c.x, (t + 1) * width), width);
    prefetch(at(c.dy, (t + 1) * width), width);
    if (du != nullptr && c.dh_pre.data != nullptr) inner_products<true>(n, 1, channels, x, du, c.dh_pre.at(t), 1);
    if (dy != nullptr && c.dh_res.data != nullptr) inner_products<true>(n, n, channels, dy, x, c.dh_res.at(t), n);
    if (dy != nullptr && c.dh_post.data != nullptr)
      inner_products<true>(n, 1, channels, dy, c.f + t * channels, c.dh_post.at(t), 1);
    const std::int64_t written = dy == nullptr ? 0 : n;
    if (c.df != nullptr) mix(1, written, channels, {c.h_post.at(t), 0, 1}, dy, {}, c.df + t * channels);
    if (c.dx != nullptr)
      mix_to(where, n, written, channels, {c.h_res.at(t), 1, n}, dy, {c.h_pre.at(t), du}, c.dx + t * width);
  }
  hwy::FlushStream();
}

/// Maps that all tokens share have their gradients summed in a row for each tile.
template <class T>
void vjp(const StreamVjp<T>& call) {
  const std::int64_t n = call.sizes.n;
  const auto shared = [](const StreamMap<Compute<T>>& map) { return map.step == 0 ? map.data : nullptr; };
  sum_over_tiles<Compute<T>>(tiles_of<T>(call.sizes),
                             {{shared(call.dh_pre), n}, {shared(call.dh_post), n}, {shared(call.dh_res), n * n}},
                             [&](Compute<T>* sums, std::int64_t begin, std::int64_t end) {
                               StreamVjp<T> c = call;
                               if (shared(c.dh_pre) != nullptr) c.dh_pre.data = sums;
                               if (shared(c.dh_post) != nullptr) c.dh_post.data = sums + n;
                               if (shared(c.dh_res) != nullptr) c.dh_res.data = sums + 2 * n;
                               vjp_tile(c, begin, end);
                             });
}

template <class T>
constexpr ReadWriteKernels<T> kTable = {
    .read = for_each_tile<T, read_tile<T>>, .write = for_each_tile<T, write_tile<T>>, .vjp = vjp<T>};

braid::kernels::Tables<ReadWriteKernels> tables() { return {kTable<float>, kTable<double>, kTable<bfloat16>}; }

}  // namespace
}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::mhc::kernels, braid::kernels::Tables<ReadWriteKernels> read_write_kernels())
