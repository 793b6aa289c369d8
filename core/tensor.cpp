#include <braid/core/tensor.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/ranges.h>

#include <braid/core/detail/strided.h>
#include <braid/core/kernels/elements.h>
#include <braid/core/parallel.h>

namespace braid {
namespace {

constexpr double kLowest = INT32_MIN, kLargest = INT32_MAX;

/// static_cast, but with a defined result outside the range of integers.
template <class To, class From>
To converted(From value) {
  if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>)
    return value != value ? To{0} : static_cast<To>(std::clamp(static_cast<double>(value), kLowest, kLargest));
  else
    return static_cast<To>(value);
}

template <class To, class From>
void convert(const From* x, const From* end, To* y) {
  if constexpr (std::is_same_v<From, bfloat16> && std::is_same_v<To, float>)
    kernels::element_kernels().widen(x, y, end - x);
  else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, bfloat16>)
    kernels::element_kernels().round(x, y, end - x);
  else
    std::transform(x, end, y, converted<To, From>);
}

/// The largest n for which T has 0, 1, ..., n.
template <class T>
constexpr std::int64_t kLastInteger =
    (std::int64_t{1} << std::numeric_limits<T>::digits) - (std::is_integral_v<T> ? 1 : 0);

Tensor filled(const char* op, const Shape& shape, double value, DType dtype) {
  check_value(dtype != DType::i32 || (kLowest <= value && value <= kLargest && value == std::trunc(value)),
              "{}: value must be an integer that fits i32 but is {}", op, value);
  Tensor t(shape, dtype);
  dispatch(dtype, [&]<class T>(T) { std::fill_n(t.mutable_data<T>(), t.numel(), static_cast<T>(value)); });
  return t;
}

}  // namespace

Tensor::Tensor(const Tensor&) noexcept = default;
Tensor::Tensor(Tensor&&) noexcept = default;
Tensor& Tensor::operator=(const Tensor&) & noexcept = default;
Tensor& Tensor::operator=(Tensor&&) & noexcept = default;
Tensor::~Tensor() = default;

Tensor::Tensor(const Shape& shape, DType dtype)
    : storage_(std::make_shared<Storage>(shape.numel() * size_of(dtype))),
      shape_(shape),
      strides_(contiguous_strides(shape)),
      dtype_(dtype) {}

template <class T>
Tensor Tensor::of(const Shape& shape, List<T> values) {
  check_shape(shape.numel() == static_cast<std::int64_t>(values.size()),
              "Tensor::of: shape {} needs {} values but has {}", shape, shape.numel(), values.size());
  Tensor t(shape, dtype_of<T>());
  std::ranges::copy(values, t.mutable_data<T>());
  return t;
}

bool Tensor::is_contiguous() const {
  std::int64_t step = 1;
  bool contiguous = true;
  for (int axis = rank() - 1; axis >= 0; --axis) {
    contiguous &= shape_[axis] == 1 || strides_[axis] == step;
    step *= shape_[axis];
  }
  return contiguous || step == 0;
}

const std::byte* Tensor::bytes() const {
  check<Error>(defined(), "Tensor::data: the tensor is undefined");
  return storage_->data() + byte_offset();
}

template <class T>
const T* Tensor::data() const {
  check_dtype(dtype_ == dtype_of<T>(), "Tensor::data: asked for {} but the tensor is {}", name(dtype_of<T>()),
              name(dtype_));
  return reinterpret_cast<const T*>(bytes());
}

template <class T>
T* Tensor::mutable_data() {
  return const_cast<T*>((mutable_bytes(), data<T>()));
}

std::byte* Tensor::mutable_bytes() {
  check<Error>(defined(), "Tensor::mutable_data: the tensor is undefined");
  check<Error>(unshared(), "Tensor::mutable_data: the storage of this {} tensor is shared; write to a clone()", shape_);
  for (int axis = 0; axis < rank(); ++axis)
    check<Error>(strides_[axis] != 0 || shape_[axis] <= 1 || numel() == 0,
                 "Tensor::mutable_data: this {} tensor is broadcast along axis {}; write to a clone()", shape_, axis);
  return storage_->data() + byte_offset();
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  const Tensor t = to(dtype_of<T>()).contiguous();
  return {t.data<T>(), t.data<T>() + t.numel()};
}

double Tensor::item() const {
  check_shape(numel() == 1, "Tensor::item: expected one element but the shape is {}", shape_);
  return dispatch(dtype_, [&]<class T>(T) { return detail::without_sign_of_nan(static_cast<double>(*data<T>())); });
}

double Tensor::at(std::initializer_list<std::int64_t> index) const {
  check_shape(static_cast<int>(index.size()) == rank(), "Tensor::at: expected {} indices for shape {} but got {}",
              rank(), shape_, index.size());
  Tensor t = *this;
  for (const std::int64_t position : index) {
    const std::int64_t size = t.size(0);
    check_shape(-size <= position && position < size, "Tensor::at: shape {} has no element [{}]", shape_,
                fmt::join(index, ", "));
    t = t.select(0, position);
  }
  return t.item();
}

Tensor Tensor::clone() const {
  Tensor copy(shape_, dtype_);
  detail::copy_strided(bytes(), strides_, shape_, size_of(dtype_), copy.mutable_bytes());
  return copy;
}

Tensor Tensor::contiguous() const { return !defined() || is_contiguous() ? *this : clone(); }

Tensor Tensor::to(DType dtype) const {
  if (dtype == dtype_) return *this;
  const Tensor source = contiguous();
  Tensor out(shape_, dtype);
  dispatch(dtype_, [&]<class From>(From) {
    dispatch(dtype, [&]<class To>(To) {
      const From* x = source.data<From>();
      To* y = out.mutable_data<To>();
      parallel_for(numel(), 16384,
                   [&](std::int64_t begin, std::int64_t end) { convert(x + begin, x + end, y + begin); });
    });
  });
  return out;
}

Tensor full(const Shape& shape, double value, DType dtype) { return filled("full", shape, value, dtype); }
Tensor scalar(double value, DType dtype, const char* op) { return filled(op, {}, value, dtype); }

Tensor arange(std::int64_t n, DType dtype) {
  check_value(n >= 0, "arange: n must not be negative but is {}", n);
  return dispatch(dtype, [&]<class T>(T) {
    check_value(n - 1 <= kLastInteger<T>, "arange: n must be at most {} for {} but is {}", kLastInteger<T> + 1,
                name(dtype), n);
    Tensor t({n}, dtype);
    T* x = t.mutable_data<T>();
    for (std::int64_t i = 0; i < n; ++i) x[i] = static_cast<T>(static_cast<double>(i));
    return t;
  });
}

Tensor eye(std::int64_t n, DType dtype) {
  check_value(n >= 0, "eye: n must not be negative but is {}", n);
  Tensor t = zeros({n, n}, dtype);
  dispatch(dtype, [&]<class T>(T) {
    T* x = t.mutable_data<T>();
    for (std::int64_t i = 0; i < n; ++i) x[i * n + i] = static_cast<T>(1);
  });
  return t;
}

void check_same_dtype(const char* op, const Tensor& a, const Tensor& b) {
  check_dtype(a.dtype() == b.dtype(), "{}: inputs must have the same dtype but have {} and {}", op, name(a.dtype()),
              name(b.dtype()));
}

void check_parameter_dtype(const char* op, const Tensor& x, const Tensor& parameter) {
  if (parameter.dtype() != compute_dtype(x.dtype())) check_same_dtype(op, x, parameter);
}

bool identical(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype() || a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  return detail::element_bytes(a.contiguous()) == detail::element_bytes(b.contiguous());
}

std::string_view detail::element_bytes(const Tensor& x) {
  return {reinterpret_cast<const char*>(x.bytes()), static_cast<std::size_t>(x.numel()) * size_of(x.dtype())};
}

#define BRAID_INSTANTIATE(T)                         \
  template Tensor Tensor::of(const Shape&, List<T>); \
  template const T* Tensor::data() const;            \
  template T* Tensor::mutable_data();                \
  template std::vector<T> Tensor::to_vector() const;
BRAID_INSTANTIATE(float)
BRAID_INSTANTIATE(double)
BRAID_INSTANTIATE(std::int32_t)
BRAID_INSTANTIATE(bfloat16)
#undef BRAID_INSTANTIATE

}  // namespace braid
