#include <braid/core/dtype.h>

namespace braid {

std::string_view name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::f64: return "f64";
    case DType::i32: return "i32";
    case DType::bf16: return "bf16";
  }
  return "unknown";
}

std::size_t size_of(DType dtype) {
  return dispatch(dtype, [](auto zero) { return sizeof(zero); });
}

}  // namespace braid
