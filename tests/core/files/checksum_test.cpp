#include <braid/core/files/checksum.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include <braid/core/files/file_system.h>
#include <braid/core/random.h>

namespace braid::checksum_test {
namespace {

// Of the reference implementation's xxhsum -H2.
TEST(Checksum, IsXXH3Of128Bits) { EXPECT_EQ(checksum(""), "99aa06d3014798d86001c324468d497f"); }

TEST(Checksum, FindsEveryFlippedBit) {
  Rng rng(1);
  Tensor x = randn({3, 5}, rng);
  std::set<std::string> seen{checksum({{"x", x}}, {})};
  std::byte* bytes = x.mutable_bytes();
  for (int bit = 0; bit < 15 * 32; ++bit) {
    const std::byte flip{static_cast<unsigned char>(1 << bit % 8)};
    bytes[bit / 8] ^= flip;
    seen.insert(checksum({{"x", x}}, {}));
    bytes[bit / 8] ^= flip;
  }
  EXPECT_EQ(seen.size(), 1 + 15 * 32);
}

TEST(Checksum, CoversNamesTypesShapesAndMetadata) {
  const Tensor x = zeros({2, 3});
  const std::set<std::string> all{checksum({{"x", x}}, {}),
                                  checksum({{"y", x}}, {}),
                                  checksum({{"x", zeros({3, 2})}}, {}),
                                  checksum({{"x", zeros({2, 3}, DType::i32)}}, {}),
                                  checksum({{"x", x}}, {{"step", "1"}}),
                                  checksum({{"x", x}}, {{"step", "2"}}),
                                  checksum({{"x", x}}, {{"ste", "p1"}}),
                                  checksum({}, {})};
  EXPECT_EQ(all.size(), 8);
}

TEST(Checksum, IsOfTheElementsNotOfHowTheyLie) {
  Rng rng(1);
  const Tensor x = randn({3, 5}, rng);
  EXPECT_EQ(checksum({{"x", x.transpose()}}, {}), checksum({{"x", x.transpose().contiguous()}}, {}));
}

TEST(Checksum, OfAFileIsThatOfItsBytes) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "braid_checksum";
  std::string bytes(5'000'000, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i >> 7);
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(checksum(RegularFile("file", path)), checksum(bytes));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace braid::checksum_test
