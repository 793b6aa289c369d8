#include <braid/mhc/kernels/read_write.h>

#define HWY_TARGET_INCLUDE "braid/mhc/kernels/read_write.cpp"
#include <hwy/foreach_target.h>

#include <braid/mhc/kernels/inner_products-inl.h>
#include <braid/mhc/kernels/mix-inl.h>

HWY_BEFORE_NAMESPACE();
namespace braid::mhc::kernels::HWY_NAMESPACE {
namespace {

template <class S>
void read(const Tensor& map, const Tensor& streams, Tensor& result) {
  const StreamSizes s = sizes_of(streams.shape());
  const StreamMap<const Compute<S>> h_pre = MapIn{map, 1};
  const S* x = In{streams};
  S* u = Out{result};
  tiles_of<S>(s).for_each([=](std::int64_t begin, std::int64_t end) HWY_ATTR {
    for (std::int64_t t = begin; t < end; ++t)
      mix(1, s.n, s.channels, {h_pre.at(t), 0, 1}, x + t * s.width(), {}, u + t * s.channels);
  });
}

template <class S>
void write(const Tensor& res, const Tensor& post, const Tensor& streams, const Tensor& output, Tensor& result) {
  const StreamSizes s = sizes_of(streams.shape());
  const std::int64_t n = s.n, rows = result.size(-2), channels = s.channels, width = rows * channels;
  const StreamMap<const Compute<S>> h_res = MapIn{res, 2}, h_post = MapIn{post, 1};
  const S *x = In{streams}, *f = In{output};
  S* y = Out{result};
  tiles_of<S>(s).for_each([=](std::int64_t begin, std::int64_t end) HWY_ATTR {
    const Store where = store_for(y, s.tokens * width, channels);
    for (std::int64_t t = begin; t < end; ++t)
      mix_to(where, kFromZero, rows, n, channels, {h_res.at(t), n, 1}, x + t * s.width(),
             {h_post.at(t), at(f, t * channels)}, y + t * width);
    hwy::FlushStream();
  });
}

/// Maps that all tokens share have their gradients summed in a row for each tile: dh_pre [n], dh_post [n],
/// dh_res [rows, n].
template <class S, class T = Compute<S>>
void vjp(const StreamTensors& in, const Tensor& read_cotangent, const Tensor& write_cotangent, StreamTensors& d) {
  const StreamSizes s = sizes_of((in.x.defined() ? in.x : write_cotangent).shape());
  const std::int64_t n = s.n, rows = write_cotangent.defined() ? write_cotangent.size(-2) : 0, channels = s.channels,
                     width = s.width(), dy_width = rows * channels;
  const StreamMap<const T> h_pre = MapIn{in.h_pre, 1}, h_res = MapIn{in.h_res, 2}, h_post = MapIn{in.h_post, 1};
  const StreamMap<T> pre_out = MapOut{d.h_pre, 1}, res_out = MapOut{d.h_res, 2}, post_out = MapOut{d.h_post, 1};
  const S *all_x = In{in.x}, *f = In{in.f}, *all_du = In{read_cotangent}, *all_dy = In{write_cotangent};
  S *dx = Out{d.x}, *df = Out{d.f};
  const auto vjp_tile = [=](T* sums, std::int64_t begin, std::int64_t end) HWY_ATTR {
    const auto summed = [](StreamMap<T> map, T* sum) {
      return map.data == nullptr || map.step != 0 ? map : StreamMap<T>{sum};
    };
    const StreamMap<T> dh_pre = summed(pre_out, sums), dh_post = summed(post_out, sums + n),
                       dh_res = summed(res_out, sums + 2 * n);
    const Store where = store_for(dx, s.tokens * width, channels);
    for (std::int64_t t = begin; t < end; ++t) {
      const S *du = at(all_du, t * channels), *dy = at(all_dy, t * dy_width), *x = at(all_x, t * width);
      prefetch(at(all_x, (t + 1) * width), width);
      prefetch(at(all_dy, (t + 1) * dy_width), dy_width);
      if (du != nullptr && dh_pre.data != nullptr) inner_products<true>(n, 1, channels, x, du, dh_pre.at(t));
      if (dy != nullptr && dh_res.data != nullptr) inner_products<true>(rows, n, channels, dy, x, dh_res.at(t));
      if (dy != nullptr && dh_post.data != nullptr)
        inner_products<true>(n, 1, channels, dy, f + t * channels, dh_post.at(t));
      if (df != nullptr) mix(1, rows, channels, {h_post.at(t), 0, 1}, dy, {}, df + t * channels);
      if (dx != nullptr)
        mix_to(where, kFromZero, n, rows, channels, {h_res.at(t), 1, n}, dy, {h_pre.at(t), du}, dx + t * width);
    }
    hwy::FlushStream();
  };
  const auto shared = [](const StreamMap<T>& map) { return map.step == 0 ? map.data : nullptr; };
  sum_over_tiles<T>(tiles_of<S>(s), {{shared(pre_out), n}, {shared(post_out), n}, {shared(res_out), rows * n}},
                    vjp_tile);
}

template <class T>
constexpr ReadWriteKernels<T> kTable = {.read = read<T>, .write = write<T>, .vjp = vjp<T>};

braid::kernels::Tables<ReadWriteKernels> tables() { return {kTable<float>, kTable<double>, kTable<bfloat16>}; }

}  // namespace
}  // namespace braid::mhc::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

BRAID_DISPATCH(braid::mhc::kernels, braid::kernels::Tables<ReadWriteKernels> read_write_kernels())
