// What stands for core/files/npz.cpp where libzip is absent.
#include <braid/core/detail/missing_library.h>
#include <braid/core/files/npy.h>

namespace braid {

std::map<std::string, Tensor> load_npz(const std::filesystem::path&) { detail::throw_missing("load_npz", "libzip"); }
void save_npz(const std::filesystem::path&, const std::map<std::string, Tensor>&, const SaveNpz&) {
  detail::throw_missing("save_npz", "libzip");
}

}  // namespace braid
