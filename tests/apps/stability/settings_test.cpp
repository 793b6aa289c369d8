#include <apps/stability/settings.h>

#include <algorithm>

#include <gtest/gtest.h>

namespace braid::stability {
namespace {

TEST(StabilityModes, HaveEveryConnection) {
  const auto modes = mode_names();
  for (const std::string_view name : mhc::connection_names()) {
    if (name == "skip") continue;  // has three modes of its own
    const auto at = std::ranges::find(modes, name);
    ASSERT_NE(at, modes.end()) << name;
    const auto mode = static_cast<Mode>(at - modes.begin());
    EXPECT_EQ(stability::name(mode), name);
    EXPECT_EQ(connection_config(mode, {}).kind, mhc::connection_kind(name));
  }
}

TEST(StabilityModes, OfSkipDifferInTheirMode) {
  EXPECT_EQ(connection_config(Mode::skip_residual, {}).skip.mode, mhc::SkipMode::residual);
  EXPECT_EQ(connection_config(Mode::skip_hc, {}).skip.mode, mhc::SkipMode::hc);
  EXPECT_EQ(connection_config(Mode::skip_mhc, {}).skip.mode, mhc::SkipMode::mhc);
}

}  // namespace
}  // namespace braid::stability
