#include <braid/core/files/npy.h>

#include <ostream>

#include <braid/core/files/atomic_file.h>
#include <braid/core/files/detail/npy_format.h>
#include <braid/core/files/file_system.h>

namespace braid {

Tensor load_npy(const std::filesystem::path& path) {
  RegularFile file("load_npy: " + path.string(), path);
  return detail::read_npy({file.where(), file.size(), [&](void* out, std::uint64_t bytes) { file.read(out, bytes); }});
}

void save_npy(const std::filesystem::path& path, const Tensor& tensor) {
  check_value(tensor.defined(), "save_npy: the tensor is undefined");
  const Tensor elements = tensor.contiguous();
  write_file_atomically(
      path, [&](std::ostream& out) { out << detail::npy_header(elements) << detail::element_bytes(elements); });
}

}  // namespace braid
