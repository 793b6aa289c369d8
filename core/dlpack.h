#pragma once
#include <memory>

#include <braid/core/tensor.h>

struct DLManagedTensor;  // of <dlpack/dlpack.h>

namespace braid {

/// Calls the deleter that a DLManagedTensor has.
struct DeleteDLPack {
  void operator()(DLManagedTensor* managed) const;
};
/// `release()` hands it on to another library, which then calls its deleter.
using DLPack = std::unique_ptr<DLManagedTensor, DeleteDLPack>;

/// A tensor as other libraries take it, without a copy: f32, f64, bf16 or i32 on the CPU, views with their strides. It
/// keeps the storage alive; who writes through it writes into every tensor that shares that. A view with a negative
/// stride, which few libraries take, is copied. DLPack 0.6, https://dmlc.github.io/dlpack. Throws ValueError for an
/// undefined tensor.
DLPack to_dlpack(const Tensor& tensor);

/// A row-major copy of what another library has handed on, which is deleted then: f32, f64, bf16 or i32, or i64 of
/// which every value fits i32. Throws DTypeError for other elements, ValueError for another device, an integer that
/// does not fit or no tensor at all, ShapeError for more axes than a Shape has or a negative size.
Tensor from_dlpack(DLPack managed);

}  // namespace braid
