#include <braid/dist/mpi/detail/world.h>

#include <cstddef>

#include <gtest/gtest.h>

namespace braid::dist::detail {
namespace {

TEST(PostPieces, CoverAMessage) {
  constexpr std::size_t kPiece = std::size_t{1} << 30;
  const auto* const bytes = reinterpret_cast<const std::byte*>(kPiece);  // are not looked at
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kPiece - 1, kPiece, kPiece + 1, 3 * kPiece}) {
    std::size_t sent = 0;
    post_pieces(bytes, size, [&](const std::byte* piece, int count) {
      EXPECT_EQ(piece, bytes + sent);
      EXPECT_GT(count, 0);
      EXPECT_EQ(static_cast<std::size_t>(count), std::min(kPiece, size - sent));
      sent += static_cast<std::size_t>(count);
    });
    EXPECT_EQ(sent, size);
  }
}

}  // namespace
}  // namespace braid::dist::detail
