#include <braid/core/dlpack.h>

#include <dlpack/dlpack.h>

#include <array>
#include <cstddef>
#include <span>
#include <utility>

namespace braid {
namespace {

/// What an exported tensor holds on to.
struct Exported {
  Tensor tensor;
  std::array<std::int64_t, Shape::kMaxRank> sizes{}, strides{};
  DLManagedTensor managed{};
};

/// PyTorch and others refuse such strides.
bool goes_backward(const Tensor& tensor) {
  for (int axis = 0; axis < tensor.rank(); ++axis)
    if (tensor.strides()[static_cast<std::size_t>(axis)] < 0) return true;
  return false;
}

DLDataType type_of(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * size_of(dtype));
  const auto code = dtype == DType::i32 ? kDLInt : dtype == DType::bf16 ? kDLBfloat : kDLFloat;
  return {static_cast<std::uint8_t>(code), bits, /*lanes=*/1};
}

/// The shape of a tensor that another library has made.
Shape shape_of(const DLTensor& t) {
  check_shape(t.ndim >= 0 && t.ndim <= static_cast<int>(Shape::kMaxRank),
              "from_dlpack: must have 0 to {} axes but has {}", Shape::kMaxRank, t.ndim);
  const std::span<const std::int64_t> sizes(t.shape, static_cast<std::size_t>(t.ndim));
  for (const std::int64_t size : sizes)
    check_shape(size >= 0, "from_dlpack: a size must not be negative but is {}", size);
  return Shape(sizes);
}

/// A tensor of type To with the elements of a strided array. Strides may have any sign.
template <class From, class To>
Tensor copy(const DLTensor& from) {
  const auto* first = static_cast<const std::byte*>(from.data) + from.byte_offset;
  const Shape shape = shape_of(from);
  Tensor to(shape, dtype_of<To>());
  const int rank = shape.rank();
  const Strides row_major = to.strides();
  To* out = to.mutable_data<To>();
  std::array<std::int64_t, Shape::kMaxRank> index{};
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    std::int64_t offset = 0;
    for (int axis = 0; axis < rank; ++axis)
      offset += index[static_cast<std::size_t>(axis)] *
                (from.strides != nullptr ? from.strides[axis] : row_major[static_cast<std::size_t>(axis)]);
    const From value = reinterpret_cast<const From*>(first)[offset];
    if constexpr (std::is_integral_v<From>)
      check_value(std::in_range<std::int32_t>(value), "from_dlpack: integers must fit 32 bits but one is {}", value);
    out[i] = static_cast<To>(value);
    for (int axis = rank; axis-- > 0 && ++index[static_cast<std::size_t>(axis)] == shape[axis];)
      index[static_cast<std::size_t>(axis)] = 0;
  }
  return to;
}

}  // namespace

void DeleteDLPack::operator()(DLManagedTensor* managed) const {
  if (managed->deleter != nullptr) managed->deleter(managed);
}

DLPack to_dlpack(const Tensor& given) {
  check_value(given.defined(), "to_dlpack: the tensor is undefined");
  auto exported = std::make_unique<Exported>();
  const Tensor& tensor = exported->tensor = goes_backward(given) ? given.clone() : given;
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    exported->sizes[static_cast<std::size_t>(axis)] = tensor.shape()[axis];
    exported->strides[static_cast<std::size_t>(axis)] = tensor.strides()[static_cast<std::size_t>(axis)];
  }
  exported->managed = {.dl_tensor = {.data = const_cast<std::byte*>(tensor.bytes()),
                                     .device = {.device_type = kDLCPU, .device_id = 0},
                                     .ndim = tensor.rank(),
                                     .dtype = type_of(tensor.dtype()),
                                     .shape = exported->sizes.data(),
                                     .strides = exported->strides.data(),
                                     .byte_offset = 0},
                       .manager_ctx = exported.get(),
                       .deleter = [](DLManagedTensor* self) { delete static_cast<Exported*>(self->manager_ctx); }};
  return DLPack(&exported.release()->managed);
}

Tensor from_dlpack(DLPack managed) {
  check_value(managed != nullptr, "from_dlpack: there is no tensor");
  const DLTensor& t = managed->dl_tensor;
  check_value(t.device.device_type == kDLCPU, "from_dlpack: must be on the CPU (device 1) but is on device {}",
              static_cast<int>(t.device.device_type));
  const auto is = [&](DLDataTypeCode code, int bits) {
    return t.dtype.code == code && t.dtype.bits == bits && t.dtype.lanes == 1;
  };
  if (is(kDLFloat, 32)) return copy<float, float>(t);
  if (is(kDLFloat, 64)) return copy<double, double>(t);
  if (is(kDLBfloat, 16)) return copy<bfloat16, bfloat16>(t);
  if (is(kDLInt, 32)) return copy<std::int32_t, std::int32_t>(t);
  if (is(kDLInt, 64)) return copy<std::int64_t, std::int32_t>(t);
  throw DTypeError(fmt::format("from_dlpack: must be f32, f64, bf16, i32 or i64 but has code {}, {} bits and {} lanes",
                               int{t.dtype.code}, int{t.dtype.bits}, int{t.dtype.lanes}));
}

}  // namespace braid
