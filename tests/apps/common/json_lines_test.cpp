#include "../../../apps/common/json_lines.h"

#include <fstream>

#include <gmock/gmock.h>

#include <tests/support.h>

namespace braid::apps {
namespace {

TEST(JSONLines, RefusesLinesThatNestWithoutEnd) {
  const auto path = std::filesystem::path(testing::TempDir()) / "braid_nested.jsonl";
  const auto complaint = [&](std::size_t depth) {
    const std::string list = std::string(depth, '[') + std::string(depth, ']');
    std::ofstream(path) << "{\"step\": 1}\n{\"step\": 2, \"a\": " << list << "}\n";
    return message_of([&] { json_lines_until(path, 2); });
  };
  EXPECT_EQ(complaint(63), "nothing was thrown");
  for (const std::size_t depth : {64, 1'000'000})
    EXPECT_EQ(complaint(depth), path.string() + ": line 2: must nest at most 64 deep but does so deeper at byte 80");
  std::filesystem::remove(path);
}

TEST(JSONLines, HaveStepsOf64Bits) {
  EXPECT_EQ(integer_of(nlohmann::json::parse("9223372036854775807")), INT64_MAX);
  EXPECT_EQ(integer_of(nlohmann::json::parse("-9223372036854775808")), INT64_MIN);
  for (const char* other : {"9223372036854775808", "18446744073709551615", "1.0", "\"1\"", "null"})
    EXPECT_EQ(integer_of(nlohmann::json::parse(other)), std::nullopt) << other;
  const auto path = std::filesystem::path(testing::TempDir()) / "braid_wrapped.jsonl";
  std::ofstream(path) << "{\"step\": 18446744073709551615}\n";
  EXPECT_EQ(message_of([&] { json_lines_until(path, 2); }),
            path.string() + ": line 1 must be an object with an integer step");
  std::filesystem::remove(path);
}

TEST(JSONLines, PastAStepAreLeftOut) {
  const auto path = std::filesystem::path(testing::TempDir()) / "braid_steps.jsonl";
  std::ofstream(path) << "{\"step\": 1}\n{\"step\": 3}\n{\"step\": 2}\n{\"step\": 1, \"unfinished\": ";
  const KeptLines kept = json_lines_until(path, 2);
  EXPECT_EQ(kept.text, "{\"step\": 1}\n{\"step\": 2}\n");
  EXPECT_EQ(kept.last_step, 2);
  EXPECT_EQ(json_lines_until(path, 0).last_step, 0);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace braid::apps
