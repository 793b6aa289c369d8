#include <braid/core/files/npy.h>

#include <ostream>

#include <braid/core/files/atomic_file.h>
#include <braid/core/files/detail/npy_format.h>
#include <braid/core/files/regular_file.h>

namespace braid {

namespace fs = std::filesystem;

Tensor load_npy(const fs::path& path) {
  RegularFile file("load_npy: " + path.string(), path);
  return detail::read_npy({file.where(), file.size(), [&](void* out, std::uint64_t bytes) { file.read(out, bytes); }});
}

void save_npy(const fs::path& path, const Tensor& tensor) {
  check_value(tensor.defined(), "save_npy: the tensor is undefined");
  const Tensor elements = tensor.contiguous();
  write_file_atomically(path, [&](std::ostream& out) {
    out << detail::npy_header(elements);
    out.write(reinterpret_cast<const char*>(elements.bytes()),
              static_cast<std::streamsize>(elements.numel()) * static_cast<std::streamsize>(size_of(elements.dtype())));
  });
}

}  // namespace braid
