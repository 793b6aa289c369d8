// What a build without a library says. CI has all libraries: `cmake -D CMAKE_DISABLE_FIND_PACKAGE_zip=ON` and the like
// give these tests something to do.
#include <braid/core/error.h>

#include <gmock/gmock.h>

#include <braid/core/dlpack.h>
#include <braid/core/files/checksum.h>
#include <braid/core/files/npy.h>
#include <braid/core/files/safetensors.h>

namespace braid::missing_library_test {
namespace {

template <class Function>
void expect_missing(Function function, const std::string& name, const std::string& library) {
  EXPECT_THAT(function, testing::ThrowsMessage<MissingLibrary>(name + ": this build of braid is without " + library +
                                                               ", which it needs"));
}

TEST(MissingLibrary, NamesTheFunctionAndTheLibrary) {
  expect_missing([] { throw MissingLibrary("load_npz", "libzip"); }, "load_npz", "libzip");
}

#ifndef BRAID_HAS_ZIP
TEST(MissingLibrary, IsThrownWithoutLibzip) {
  expect_missing([] { load_npz("x.npz"); }, "load_npz", "libzip");
  expect_missing([] { save_npz("x.npz", {}); }, "save_npz", "libzip");
}
#endif

#ifndef BRAID_HAS_JSON
TEST(MissingLibrary, IsThrownWithoutJsonBeforeAFileIsWritten) {
  const std::string file = testing::TempDir() + "braid_missing_library_test.safetensors";
  expect_missing([&] { save_safetensors(file, {{"x", zeros({1})}}); }, "save_safetensors", "nlohmann-json");
  EXPECT_FALSE(std::filesystem::exists(file));
}
#endif

#ifndef BRAID_HAS_XXHASH
TEST(MissingLibrary, IsThrownWithoutXxHash) {
  expect_missing([] { checksum("abc"); }, "checksum", "xxHash");
  expect_missing([] { checksum({{"x", zeros({1})}}, {}); }, "checksum", "xxHash");
}
#endif

#ifndef BRAID_HAS_DLPACK
TEST(MissingLibrary, IsThrownWithoutDLPack) {
  expect_missing([] { to_dlpack(zeros({1})); }, "to_dlpack", "DLPack");
  expect_missing([] { from_dlpack(nullptr); }, "from_dlpack", "DLPack");
}
#endif

}  // namespace
}  // namespace braid::missing_library_test
