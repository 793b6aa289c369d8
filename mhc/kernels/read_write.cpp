#include <braid/mhc/kernels/read_write.h>

#include <braid/mhc/kernels/tiles.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "braid/mhc/kernels/read_write.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <braid/mhc/kernels/inner_products-inl.h>
#include <braid/mhc/kernels/mix-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::HWY_NAMESPACE {
namespace {

using kernels::StreamRead, kernels::StreamVjp, kernels::StreamWrite;

template <class T>
void read_tile(const StreamRead<T>& c, int64_t begin, int64_t end) {
  const auto [tokens, n, channels] = c.sizes;
  for (int64_t t = begin; t < end; ++t) {
    const T* x = c.x + t * n * channels;
    mix(1, n, channels, {c.h_pre.at(t), 0, 1}, x, {}, c.u + t * channels);
  }
}

template <class T>
void write_tile(const StreamWrite<T>& c, int64_t begin, int64_t end) {
  const auto [tokens, n, channels] = c.sizes;
  const int64_t width = n * channels;
  const Store where = store_for(c.y, tokens * width, channels);
  for (int64_t t = begin; t < end; ++t) {
    const T* x = c.x + t * width;
    mix_to(where, n, n, channels, {c.h_res.at(t), n, 1}, x, Outer<T>{c.h_post.at(t), c.f + t * channels},
           c.y + t * width);
  }
  hwy::FlushStream();
}

template <class T>
T* at(T* data, int64_t offset) {
  return data == nullptr ? nullptr : data + offset;
}

template <class T>
void vjp_tile(const StreamVjp<T>& c, int64_t begin, int64_t end) {
  const auto [tokens, n, channels] = c.sizes;
  const int64_t width = n * channels;
  const Store where = store_for(c.dx, tokens * width, channels);
  for (int64_t t = begin; t < end; ++t) {
    const T *du = at(c.du, t * channels), *dy = at(c.dy, t * width), *x = at(c.x, t * width);
    prefetch(at(c.x, (t + 1) * width), width);
    prefetch(at(c.dy, (t + 1) * width), width);
    if (du != nullptr && c.dh_pre.data != nullptr) inner_products<true>(n, 1, channels, x, du, c.dh_pre.at(t), 1);
    if (dy != nullptr && c.dh_res.data != nullptr) inner_products<true>(n, n, channels, dy, x, c.dh_res.at(t), n);
    if (dy != nullptr && c.dh_post.data != nullptr)
      inner_products<true>(n, 1, channels, dy, c.f + t * channels, c.dh_post.at(t), 1);
    const int64_t written = dy == nullptr ? 0 : n;
    if (c.df != nullptr) mix(1, written, channels, {c.h_post.at(t), 0, 1}, dy, {}, c.df + t * channels);
    if (c.dx != nullptr)
      mix_to(where, n, written, channels, {c.h_res.at(t), 1, n}, dy, Outer<T>{c.h_pre.at(t), du}, c.dx + t * width);
  }
  hwy::FlushStream();
}

void read_f32(const StreamRead<float>& c, int64_t begin, int64_t end) { read_tile(c, begin, end); }
void read_f64(const StreamRead<double>& c, int64_t begin, int64_t end) { read_tile(c, begin, end); }
void write_f32(const StreamWrite<float>& c, int64_t begin, int64_t end) { write_tile(c, begin, end); }
void write_f64(const StreamWrite<double>& c, int64_t begin, int64_t end) { write_tile(c, begin, end); }
void vjp_f32(const StreamVjp<float>& c, int64_t begin, int64_t end) { vjp_tile(c, begin, end); }
void vjp_f64(const StreamVjp<double>& c, int64_t begin, int64_t end) { vjp_tile(c, begin, end); }

}  // namespace
}  // namespace braid::mhc::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace braid::mhc {
namespace {

HWY_EXPORT(read_f32);
HWY_EXPORT(read_f64);
HWY_EXPORT(write_f32);
HWY_EXPORT(write_f64);
HWY_EXPORT(vjp_f32);
HWY_EXPORT(vjp_f64);

/// Calls tile(call, begin, end) with the gradients of maps for all tokens led into the tile's row of sums.
template <class T, class F>
void vjp_by_tiles(const kernels::StreamVjp<T>& call, F tile) {
  const kernels::Tiles tiles = kernels::tiles_of<T>(call.sizes);
  const std::int64_t n = call.sizes.n;
  kernels::TileSums<T> sums(tiles, n * (n + 2));
  const auto shared = [](const kernels::StreamMap<T>& map) { return map.data != nullptr && map.step == 0; };
  tiles.for_each([&](std::int64_t begin, std::int64_t end) {
    kernels::StreamVjp<T> c = call;
    T* row = sums.row(begin);
    if (shared(call.dh_pre)) c.dh_pre.data = row;
    if (shared(call.dh_post)) c.dh_post.data = row + n;
    if (shared(call.dh_res)) c.dh_res.data = row + 2 * n;
    tile(c, begin, end);
  });
  if (shared(call.dh_pre)) sums.add_up(0, n, call.dh_pre.data);
  if (shared(call.dh_post)) sums.add_up(n, n, call.dh_post.data);
  if (shared(call.dh_res)) sums.add_up(2 * n, n * n, call.dh_res.data);
}

}  // namespace

namespace kernels {

void stream_read(const StreamRead<float>& c) {
  tiles_of<float>(c.sizes).for_each([&](auto... range) { HWY_DYNAMIC_DISPATCH(read_f32)(c, range...); });
}

void stream_read(const StreamRead<double>& c) {
  tiles_of<double>(c.sizes).for_each([&](auto... range) { HWY_DYNAMIC_DISPATCH(read_f64)(c, range...); });
}

void stream_write(const StreamWrite<float>& c) {
  tiles_of<float>(c.sizes).for_each([&](auto... range) { HWY_DYNAMIC_DISPATCH(write_f32)(c, range...); });
}

void stream_write(const StreamWrite<double>& c) {
  tiles_of<double>(c.sizes).for_each([&](auto... range) { HWY_DYNAMIC_DISPATCH(write_f64)(c, range...); });
}

void stream_vjp(const StreamVjp<float>& call) {
  vjp_by_tiles(call, [](const auto& c, auto... range) { HWY_DYNAMIC_DISPATCH(vjp_f32)(c, range...); });
}

void stream_vjp(const StreamVjp<double>& call) {
  vjp_by_tiles(call, [](const auto& c, auto... range) { HWY_DYNAMIC_DISPATCH(vjp_f64)(c, range...); });
}

}  // namespace kernels
}  // namespace braid::mhc
#endif  // HWY_ONCE
