#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <braid/core/dtype.h>
#include <braid/core/shape.h>
#include <braid/core/storage.h>

namespace braid {

/// A strided view of a shared, typed block of memory. A value: copies are cheap and share the storage.
/// Immutable by convention; a new tensor is filled through mutable_data, which requires that its storage is not shared.
/// A default-constructed Tensor is undefined: it has no storage, and what needs one throws Error. vjps use it for "no
/// cotangent".
class Tensor {
 public:
  Tensor() = default;
  // Not inline, since much code copies tensors: a quarter of its instructions and of its compile time.
  Tensor(const Tensor&) noexcept;
  Tensor(Tensor&&) noexcept;
  // Not to temporaries: `x[0] = y` would assign to a view.
  Tensor& operator=(const Tensor&) & noexcept;
  Tensor& operator=(Tensor&&) & noexcept;
  ~Tensor();
  /// Elements are uninitialized.
  Tensor(const Shape& shape, DType dtype);

  /// `Tensor::of<float>({2, 2}, {1, 2, 3, 4})`: copies `values`, row-major. Throws ShapeError unless they fill shape.
  template <class T>
  static Tensor of(const Shape& shape, List<T> values);

  bool defined() const { return storage_ != nullptr; }  ///< whether it has a storage
  const Shape& shape() const& { return shape_; }        ///< sizes of the axes
  Shape shape() && { return shape_; }                   ///< of a temporary: a copy
  const Strides& strides() const& { return strides_; }  ///< per axis, the elements from one position to the next
  Strides strides() && { return strides_; }             ///< of a temporary: a copy
  int rank() const { return shape_.rank(); }            ///< the number of axes
  /// The size of an axis; negative axes count from the end. Throws ShapeError if there is no such axis.
  std::int64_t size(int axis) const { return shape_.begin()[shape_.index(axis, "size")]; }
  /// The number of elements; 0 when undefined.
  std::int64_t numel() const { return defined() ? shape_.numel() : 0; }
  DType dtype() const { return dtype_; }  ///< the element type
  bool is_contiguous() const;             ///< whether the elements are row-major without gaps

  /// The first element; the others are strides() apart. Throws DTypeError if T is not the element type, Error if it is
  /// undefined.
  template <class T>
  const T* data() const;
  /// The same for writing. Throws as data() does, and Error if the storage is shared or broadcast.
  template <class T>
  T* mutable_data();
  /// The first element, untyped, for kernels that dispatch on dtype() themselves. Throws Error if it is undefined.
  const std::byte* bytes() const;
  /// The same for writing. Throws Error as mutable_data() does.
  std::byte* mutable_bytes();
  /// Whether no other tensor shares the storage.
  bool unshared() const { return storage_.use_count() == 1; }

  /// The elements, row-major, converted to T.
  template <class T>
  std::vector<T> to_vector() const;
  /// The only element. Throws ShapeError unless numel() is 1.
  double item() const;
  /// The element at an index, one entry per axis; negative ones count from the end. Throws ShapeError if there is none.
  double at(std::initializer_list<std::int64_t> index) const;

  // Views: they share the storage.
  /// Axis i of the view is axis `axes[i]`. Throws ShapeError unless each axis is given once.
  Tensor permute(List<int> axes) const;
  /// The view with two axes exchanged. Throws ShapeError for a missing axis.
  Tensor transpose(int axis_a = -2, int axis_b = -1) const;
  /// Every `step`-th position in [begin, end) of an axis; negative positions count from the end. A negative step goes
  /// back from `begin` to the last position above `end`: `slice(0, -1, -n - 1, -1)` reverses an axis of size n. Throws
  /// ShapeError if axis or positions do not exist, ValueError for step 0.
  Tensor slice(int axis, std::int64_t begin, std::int64_t end, std::int64_t step = 1) const;
  /// One position of an axis, which is removed. Throws ShapeError if there is none.
  Tensor select(int axis, std::int64_t position) const;
  /// `x[i]` is `x.select(0, i)`. Throws as select() does.
  Tensor operator[](std::int64_t position) const { return select(0, position); }
  /// Repeats axes of size 1 and adds axes in front. Throws ShapeError if the shape does not broadcast to that.
  Tensor broadcast_to(const Shape& shape) const;
  /// Inserts an axis of size 1 before `axis`; -1 appends it. Throws ShapeError if there is no such place, or 8 axes.
  Tensor expand_dims(int axis) const;
  /// Removes an axis. Throws ShapeError unless its size is 1.
  Tensor squeeze(int axis) const;
  /// The same elements, row-major, in another shape; one size may be -1, which infers it. Copies only if no strides
  /// give that shape. Throws ShapeError unless the shape has as many elements.
  Tensor reshape(List<std::int64_t> sizes) const;

  /// This tensor if it is contiguous, else a row-major copy of the same shape.
  Tensor contiguous() const;
  /// A row-major copy of the same shape with its own storage.
  Tensor clone() const;
  /// Converted to `dtype`, element by element; this tensor if it has that dtype. Conversion to i32 drops the fraction,
  /// clamps to the range and turns NaN into 0; conversion to f32 and bf16 rounds, beyond the range to infinity.
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
/// A tensor whose elements are all `value`. Throws ValueError if dtype is i32 and value is not an i32.
Tensor full(const Shape& shape, double value, DType dtype = DType::f32);
/// A tensor of zeros.
inline Tensor zeros(const Shape& shape, DType dtype = DType::f32) { return full(shape, 0, dtype); }
/// A tensor of ones.
inline Tensor ones(const Shape& shape, DType dtype = DType::f32) { return full(shape, 1, dtype); }
/// 0, 1, ..., n - 1: [n]. Throws ValueError for n < 0 and unless the dtype represents all of them: f32 integers up to
/// 2^24, bf16 to 2^8.
Tensor arange(std::int64_t n, DType dtype = DType::f32);
template <std::floating_point T>
Tensor arange(T n, DType dtype = DType::f32) = delete;
/// The identity matrix [n, n]. Throws ValueError for n < 0.
Tensor eye(std::int64_t n, DType dtype = DType::f32);
/// A tensor of rank 0. Throws as full() does, naming `op`.
Tensor scalar(double value, DType dtype = DType::f32, const char* op = "scalar");

/// Throws DTypeError naming `op` unless both have the same dtype.
void check_same_dtype(const char* op, const Tensor& a, const Tensor& b);

/// Throws DTypeError naming `op` unless a parameter has the dtype of the activations x or, for those of bf16, f32.
void check_parameter_dtype(const char* op, const Tensor& x, const Tensor& parameter);

/// Whether two tensors have the same shape, dtype and bits.
bool identical(const Tensor& a, const Tensor& b);

namespace detail {
/// The bytes of a contiguous tensor's elements, which it has to outlive.
std::string_view element_bytes(const Tensor& x);
}  // namespace detail

}  // namespace braid
