// What stands for core/files/npz.cpp where libzip is absent.
#include <braid/core/error.h>
#include <braid/core/files/npy.h>

namespace braid {

std::map<std::string, Tensor> load_npz(const std::filesystem::path&) { throw MissingLibrary("load_npz", "libzip"); }
void save_npz(const std::filesystem::path&, const std::map<std::string, Tensor>&, const SaveNpz&) {
  throw MissingLibrary("save_npz", "libzip");
}

}  // namespace braid
