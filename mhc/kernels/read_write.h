#pragma once
#include <cstdint>

#include <braid/core/kernels/tables.h>

namespace braid::mhc::kernels {

struct StreamSizes {
  std::int64_t tokens, n, channels;

  std::int64_t width() const { return n * channels; }
};

/// A map of the streams, or its gradient: one for all tokens (step 0), or one per token at intervals of `step`
/// elements.
template <class T>
struct StreamMap {
  T* data = nullptr;
  std::int64_t step = 0;

  T* at(std::int64_t token) const { return data + token * step; }
};

/// u = sum_i h_pre_i x_i
template <class T>
struct StreamRead {
  StreamSizes sizes;
  StreamMap<const Compute<T>> h_pre;  // [n]
  const T* x;                         // [tokens, n, C]
  T* u;                               // [tokens, C]
};

/// y_i = sum_j h_res_ij x_j + h_post_i f
template <class T>
struct StreamWrite {
  StreamSizes sizes;
  StreamMap<const Compute<T>> h_res, h_post;  // [n, n], [n]
  const T *x, *f;                             // [tokens, n, C], [tokens, C]
  T* y;                                       // [tokens, n, C]
};

/// The vjp of both, in one pass: df = H_post dy, dx_j = sum_i h_res_ij dy_i + h_pre_j du, dh_post_i = <dy_i, f>,
/// dh_res_ij = <dy_i, x_j>, dh_pre_i = <du, x_i>. Null stands for a zero cotangent or an unused gradient.
/// Gradients of maps per token are added to the values there; those of maps for all tokens are summed tile by tile,
/// then in the order of the tiles.
template <class T>
struct StreamVjp {
  StreamSizes sizes;
  StreamMap<const Compute<T>> h_pre = {}, h_res = {}, h_post = {};
  const T *x = nullptr, *f = nullptr;
  const T *du = nullptr, *dy = nullptr;                          // [tokens, C], [tokens, n, C]
  StreamMap<Compute<T>> dh_pre = {}, dh_res = {}, dh_post = {};  // of the sizes of the maps
  T *dx = nullptr, *df = nullptr;
};

/// The kernels for the best instruction set of this processor. T, that of the streams, is float, double or bfloat16.
template <class T>
struct ReadWriteKernels {
  void (*read)(const StreamRead<T>&);
  void (*write)(const StreamWrite<T>&);
  void (*vjp)(const StreamVjp<T>&);
};

braid::kernels::Tables<ReadWriteKernels> read_write_kernels();

}  // namespace braid::mhc::kernels
