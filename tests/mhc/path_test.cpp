#include <braid/mhc/path.h>

#include <gtest/gtest.h>

#include <braid/core/error.h>

namespace braid::mhc::path_test {
namespace {

TEST(Path, IsKnownByName) {
  for (const Path path : {Path::fused, Path::reference}) EXPECT_EQ(path_named(name(path)), path);
  EXPECT_THROW(path_named("fast"), ValueError);
}

}  // namespace
}  // namespace braid::mhc::path_test
