#pragma once
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <braid/core/dtype.h>
#include <braid/core/shape.h>
#include <braid/core/storage.h>

namespace braid {

/// A strided view of a shared, typed block of memory. A value: copies are cheap and share the storage.
/// Immutable by convention; a fresh tensor is filled through mutable_data, which insists that nobody shares it.
/// A default-constructed Tensor is undefined (no storage); vjps use it for "no cotangent".
class Tensor {
 public:
  Tensor() = default;
  /// Elements are uninitialized.
  Tensor(const Shape& shape, DType dtype);

  /// `Tensor::of<float>({2, 2}, {1, 2, 3, 4})`: copies `values`, row-major.
  template <class T>
  static Tensor of(const Shape& shape, std::span<const T> values);
  template <class T>
  static Tensor of(const Shape& shape, std::initializer_list<T> values) {
    return of<T>(shape, std::span<const T>(values.begin(), values.size()));
  }

  bool defined() const { return storage_ != nullptr; }  ///< whether there is a storage
  const Shape& shape() const { return shape_; }         ///< sizes of the axes
  const Strides& strides() const { return strides_; }   ///< elements from one position of an axis to the next
  int rank() const { return shape_.rank(); }            ///< how many axes there are
  /// The size of an axis, negative ones counted from the end. Throws ShapeError when there is no such axis.
  std::int64_t size(int axis) const { return shape_.begin()[shape_.index(axis, "size")]; }
  /// The number of elements; 0 when undefined.
  std::int64_t numel() const { return defined() ? shape_.numel() : 0; }
  DType dtype() const { return dtype_; }  ///< of its elements
  bool is_contiguous() const;             ///< whether the elements lie row-major without gaps

  /// The first element; step by strides() unless the tensor is contiguous. Throws DTypeError when T is not its type.
  template <class T>
  const T* data() const;
  /// The same for writing. Throws Error when the storage is shared, or an element stands at several indices.
  template <class T>
  T* mutable_data();
  /// Untyped access, for kernels that dispatch on dtype() themselves.
  const std::byte* bytes() const;
  /// The same for writing. Throws as mutable_data does.
  std::byte* mutable_bytes();
  /// True when no other tensor shares the storage.
  bool unshared() const { return storage_.use_count() == 1; }

  /// The elements, row-major, converted to T.
  template <class T>
  std::vector<T> to_vector() const;
  /// The only element. Throws ShapeError unless numel() is 1.
  double item() const;
  /// The element at an index, one entry per axis; negative entries count from the end.
  double at(std::initializer_list<std::int64_t> index) const;

  // Views: they share the storage.
  /// Axis i of the view is axis `axes[i]`. Throws ShapeError unless each axis is given once.
  Tensor permute(std::span<const int> axes) const;
  Tensor permute(std::initializer_list<int> axes) const { return permute(std::span(axes.begin(), axes.size())); }
  /// Two axes exchanged.
  Tensor transpose(int axis_a = -2, int axis_b = -1) const;
  /// Every `step`-th element of [begin, end) of an axis; negative positions count from the end. A negative step goes
  /// back, from `begin` to the last one above `end`: `slice(0, -1, -n - 1, -1)` is all n in reverse order.
  Tensor slice(int axis, std::int64_t begin, std::int64_t end, std::int64_t step = 1) const;
  /// One position of an axis, which disappears.
  Tensor select(int axis, std::int64_t position) const;
  /// Axes of size 1 repeated, and new ones in front. Throws ShapeError when the shape does not broadcast to that.
  Tensor broadcast_to(const Shape& shape) const;
  /// A new axis of size 1 before `axis`; -1 puts it last.
  Tensor expand_dims(int axis) const;
  /// Without `axis`, which must have size 1. Throws ShapeError when it has not.
  Tensor squeeze(int axis) const;
  /// One size may be -1 and is inferred. Copies only when the strides leave no other way.
  Tensor reshape(std::initializer_list<std::int64_t> sizes) const {
    return reshape(std::span(sizes.begin(), sizes.size()));
  }
  Tensor reshape(std::span<const std::int64_t> sizes) const;
  Tensor reshape(const Shape& shape) const { return reshape(std::span(shape.begin(), shape.end())); }

  /// Itself when contiguous, else a row-major copy.
  Tensor contiguous() const;
  /// A row-major copy with storage of its own.
  Tensor clone() const;
  /// Converted to `dtype`; itself when it has that dtype already. To i32, numbers lose their fraction, those outside
  /// its range become its nearest end, and NaN becomes 0; to f32 and bf16, they round, beyond its range to infinity.
  Tensor to(DType dtype) const;

 private:
  std::size_t byte_offset() const { return static_cast<std::size_t>(offset_) * size_of(dtype_); }
  Tensor view(const Shape& shape, const Strides& strides, std::int64_t offset) const;
  std::optional<Strides> strides_for(const Shape& shape) const;

  std::shared_ptr<Storage> storage_;
  std::int64_t offset_ = 0;  // elements
  Shape shape_;
  Strides strides_{};
  DType dtype_ = DType::f32;
};

// Factories.
/// All elements 0.
Tensor zeros(const Shape& shape, DType dtype = DType::f32);
/// All elements 1.
Tensor ones(const Shape& shape, DType dtype = DType::f32);
/// Throws ValueError for a value that i32 does not have, if dtype is that.
Tensor full(const Shape& shape, double value, DType dtype = DType::f32);
/// 0, 1, ..., n - 1. Throws ValueError unless the dtype has all integers up to there: f32 those up to 2^24, bf16 to
/// 2^8.
Tensor arange(std::int64_t n, DType dtype = DType::f32);
/// The identity matrix [n, n].
Tensor eye(std::int64_t n, DType dtype = DType::f32);
/// A scalar tensor. Throws as full does, naming `op`.
Tensor scalar(double value, DType dtype = DType::f32, const char* op = "scalar");

/// Throws DTypeError naming `op` unless both have the same dtype.
void check_same_dtype(const char* op, const Tensor& a, const Tensor& b);

/// Throws DTypeError naming `op` unless a parameter has the dtype of the activations x or, for those of bf16, f32.
void check_parameter_dtype(const char* op, const Tensor& x, const Tensor& parameter);

/// Same shape, dtype and bits.
bool identical(const Tensor& a, const Tensor& b);

}  // namespace braid
