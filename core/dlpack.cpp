#include <braid/core/dlpack.h>

#include <dlpack/dlpack.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include <braid/core/detail/strided.h>

namespace braid {
namespace {

struct Exported {
  Tensor tensor;
  DLManagedTensor managed{};
};

/// Whether a stride is negative, which PyTorch and others refuse.
bool goes_backward(const Tensor& tensor) {
  const auto* first = tensor.strides().begin();
  return std::any_of(first, first + tensor.rank(), [](std::int64_t stride) { return stride < 0; });
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
  check_value(t.shape != nullptr || t.ndim == 0, "from_dlpack: its shape is null but it has {} axes", t.ndim);
  const std::span<const std::int64_t> sizes(t.shape, t.ndim);
  for (const std::int64_t size : sizes)
    check_shape(size >= 0, "from_dlpack: a size must not be negative but is {}", size);
  return Shape(sizes);
}

/// A tensor with the elements of a strided array. Strides may have any sign.
Tensor copy(const DLTensor& from, DType dtype) {
  Tensor to(shape_of(from), dtype);
  Strides strides = to.strides();
  if (from.strides != nullptr) std::copy_n(from.strides, from.ndim, strides.begin());
  const auto* first = static_cast<const std::byte*>(from.data) + from.byte_offset;
  detail::copy_strided(first, strides, to.shape(), size_of(dtype), to.mutable_bytes());
  return to;
}

/// The same of i64, of which every value has to fit i32.
Tensor copy_i64(const DLTensor& from) {
  const Tensor bits = copy(from, DType::f64);  // as 64-bit words
  const auto* words = reinterpret_cast<const std::int64_t*>(bits.bytes());
  Tensor to(bits.shape(), DType::i32);
  std::transform(words, words + bits.numel(), to.mutable_data<std::int32_t>(), [](std::int64_t value) {
    check_value(std::in_range<std::int32_t>(value), "from_dlpack: integers must fit 32 bits but one is {}", value);
    return static_cast<std::int32_t>(value);
  });
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
  exported->managed = {.dl_tensor = {.data = const_cast<std::byte*>(tensor.bytes()),
                                     .device = {.device_type = kDLCPU, .device_id = 0},
                                     .ndim = tensor.rank(),
                                     .dtype = type_of(tensor.dtype()),
                                     .shape = const_cast<std::int64_t*>(tensor.shape().begin()),
                                     .strides = const_cast<std::int64_t*>(tensor.strides().data()),
                                     .byte_offset = 0},
                       .manager_ctx = exported.get(),
                       .deleter = [](DLManagedTensor* self) { delete static_cast<Exported*>(self->manager_ctx); }};
  return DLPack(&exported.release()->managed);
}

Tensor from_dlpack(DLPack managed) {
  check_value(managed != nullptr, "from_dlpack: the pointer is null");
  const DLTensor& t = managed->dl_tensor;
  check_value(t.device.device_type == kDLCPU, "from_dlpack: must be on the CPU (device 1) but is on device {}",
              static_cast<int>(t.device.device_type));
  check_value(t.data != nullptr || shape_of(t).numel() == 0, "from_dlpack: its data is null but its shape {}",
              shape_of(t));
  const auto is = [&](DLDataType type) {
    return t.dtype.code == type.code && t.dtype.bits == type.bits && t.dtype.lanes == type.lanes;
  };
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::bf16})
    if (is(type_of(dtype))) return copy(t, dtype);
  if (is({kDLInt, 64, 1})) return copy_i64(t);
  throw DTypeError(fmt::format("from_dlpack: must be f32, f64, bf16, i32 or i64 but has code {}, {} bits and {} lanes",
                               int{t.dtype.code}, int{t.dtype.bits}, int{t.dtype.lanes}));
}

}  // namespace braid
