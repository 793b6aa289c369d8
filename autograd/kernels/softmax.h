#pragma once
#include <braid/autograd/kernels/rows.h>
#include <braid/core/kernels/tables.h>

namespace braid::kernels {

/// The kernels for the best instruction set of this processor, over contiguous x, y, dy, dx [rows, width]. They
/// subtract the maximum of each row, so that nothing overflows. T is float or double.
template <class T>
struct SoftmaxKernels {
  using Forward = void (*)(const Rows& rows, const T* x, T* y);
  using Vjp = void (*)(const Rows& rows, const T* dy, const T* y, T* dx);

  Forward softmax;
  Vjp softmax_vjp;
  Forward log_softmax;
  Vjp log_softmax_vjp;

  Forward logsumexp;  // y [rows]
  /// dy [rows], x [rows, width], y [rows] -> dx [rows, width].
  void (*logsumexp_vjp)(const Rows& rows, const T* dy, const T* x, const T* y, T* dx);
};

Tables<SoftmaxKernels> softmax_kernels();

}  // namespace braid::kernels
