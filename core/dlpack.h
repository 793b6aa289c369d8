#pragma once
#include <memory>

#include <braid/core/tensor.h>

struct DLManagedTensor;  // of <dlpack/dlpack.h>

namespace braid {

/// Calls the deleter of a DLManagedTensor.
struct DeleteDLPack {
  void operator()(DLManagedTensor* managed) const;  ///< calls it, if there is one
};
/// A tensor to exchange; `release()` hands it to another library, which then calls its deleter.
using DLPack = std::unique_ptr<DLManagedTensor, DeleteDLPack>;

/// Exports a tensor of any shape to other libraries without a copy: f32, f64, bf16 or i32 on the CPU, views with their
/// strides. The result keeps the storage alive; writing through it changes every tensor that shares the storage. A view
/// with a negative stride, which few libraries support, is copied. DLPack 0.6, https://dmlc.github.io/dlpack. Throws
/// ValueError for an undefined tensor.
DLPack to_dlpack(const Tensor& tensor);

/// Copies a tensor of another library, row-major, in its shape, and deletes it: f32, f64, bf16, i32, or i64 whose
/// values fit i32. Throws DTypeError for other elements, ValueError for a device other than the CPU, an integer that
/// does not fit or a null pointer, ShapeError for more axes than a Shape can have or a negative size.
Tensor from_dlpack(DLPack managed);

}  // namespace braid
