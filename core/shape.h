#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include <fmt/ranges.h>  // before anything formats a Shape, which is a range: GCC 16 rejects it afterwards

#include <braid/core/error.h>

namespace braid {

/// What a function reads while it runs: elements in braces, or a vector, an array or a span of them.
template <class T>
struct List : std::span<const T> {
  using std::span<const T>::span;
  List(std::span<const T> elements) : std::span<const T>(elements) {}  ///< views them, as all constructors do
  List(std::initializer_list<T> elements) : std::span<const T>(elements) {}
};

/// The sizes of a tensor's axes; `Shape{}` is a scalar's. At most kMaxRank axes, held in place.
class Shape {
 public:
  static constexpr int kMaxRank = 8;  ///< the largest number of axes

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes) : Shape(std::span(sizes)) {}
  /// Throws ShapeError naming `op` on a negative size, more than kMaxRank axes or more than 2^59 elements.
  explicit Shape(std::span<const std::int64_t> sizes, const char* op = "Shape");

  int rank() const { return rank_; }  ///< the number of axes
  /// The number of elements; 1 for a scalar.
  std::int64_t numel() const;
  /// The size of an axis; negative axes count from the end. Throws ShapeError if there is no such axis.
  std::int64_t operator[](int axis) const {
    return sizes_[static_cast<std::size_t>(0 <= axis && axis < rank_ ? axis : index(axis))];
  }
  /// The axis in [0, rank); negative axes count from the end. Throws ShapeError if there is no such axis; the message
  /// names the op, and its argument of this shape.
  int index(int axis, const char* op = "Shape", const char* argument = "x") const;

  const std::int64_t* begin() const { return sizes_.data(); }        ///< the first size
  const std::int64_t* end() const { return sizes_.data() + rank_; }  ///< past the last size

  // All throw ShapeError for an axis that is missing, and as the constructor does.
  Shape with(int axis, std::int64_t size) const;      ///< with another size of `axis`
  Shape inserted(int axis, std::int64_t size) const;  ///< with a new axis before `axis`
  Shape without(int axis) const;                      ///< without `axis`
  Shape axes(int first, int last) const;              ///< the axes [first, last) only
  /// This shape followed by `tail`.
  Shape concat(const Shape& tail) const;

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  int rank_ = 0;
  std::array<std::int64_t, kMaxRank> sizes_{};  // zeros from the rank on, which == compares
};

/// Elements from one position to the next of each axis of a shape.
using Strides = std::array<std::int64_t, Shape::kMaxRank>;

/// Row-major strides.
Strides contiguous_strides(const Shape& shape);

/// The shape that `a` and `b` broadcast to (numpy's rule). Throws ShapeError naming `op`.
Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);

/// `[2, 3]`, as in every error message.
std::string to_string(const Shape& shape);

}  // namespace braid

template <>
struct fmt::formatter<braid::Shape> : braid::detail::TextFormatter<braid::Shape> {};
