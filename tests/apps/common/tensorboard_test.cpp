#include "../../../apps/common/tensorboard.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>
#include <string>

#include <braid/core/error.h>
#include <tests/support.h>

namespace braid::apps {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

constexpr double kTime = 1700000000.25;

struct Events : testing::Test {
  Events() { fs::create_directories(folder); }
  ~Events() override { fs::remove_all(folder); }

  std::string read() const { return (std::stringstream() << std::ifstream(file, std::ios::binary).rdbuf()).str(); }
  void write(const std::string& bytes) const { std::ofstream(file, std::ios::binary) << bytes; }

  const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
  const fs::path folder = fs::path(testing::TempDir()) / ("braid_events_" + test);
  const fs::path file = folder / "events.out.tfevents.test";
};

TEST_F(Events, HaveTheBytesOfTensorBoard) {
  // What RecordWriter of TensorBoard 2.21 made of the same event.
  EXPECT_EQ(
      event_record(7, {{"loss/train", 2.5}, {"gradient_norm", 0.1}}, kTime),
      "\x36\0\0\0\0\0\0\0\x4f\x57\x8c\xef\x09\0\0\x10\x40\xfc\x54\xd9\x41\x10\x07\x2a\x29\x0a\x11\x0a\x0aloss/train"
      "\x15\0\0\x20\x40\x0a\x14\x0a\x0dgradient_norm\x15\xcd\xcc\xcc\x3d\x47\x52\xc6\x14"s);
}

TEST_F(Events, FollowAVersion) {
  EventFile(file).append(1, {{"x", 1}});
  const std::string first = read();
  EXPECT_THAT(first, testing::HasSubstr("brain.Event:2"));
  EventFile(file).append(2, {{"x", 2}});
  EXPECT_THAT(read(), testing::StartsWith(first));
  EXPECT_EQ(read().find("brain.Event:2"), read().rfind("brain.Event:2"));
}

TEST_F(Events, PastAStepAreLeftOut) {
  std::string all, kept;
  for (const std::int64_t step : {1, 2, 2, 3, 4, 3}) {
    all += event_record(step, {{"x", 0.5}}, kTime);
    if (step <= 3) kept += event_record(step, {{"x", 0.5}}, kTime);
  }
  write(all);
  EXPECT_EQ(events_until(file, 3), kept);
  EXPECT_EQ(events_until(file, 4), all);
  EXPECT_EQ(events_until(file, -1), "");
}

TEST_F(Events, AreKeptUpToAnUnfinishedOne) {
  const std::string one = event_record(1, {{"x", 0.5}}, kTime), two = one + event_record(2, {{"y", 1}}, kTime);
  for (std::size_t size = 0; size < two.size(); ++size) {
    write(two.substr(0, size));
    EXPECT_EQ(events_until(file, 9), size < one.size() ? "" : one) << size;
  }
}

TEST_F(Events, ThatAreDamagedAreRefused) {
  const std::string one = event_record(1, {{"x", 0.5}}, kTime), two = one + event_record(2, {{"y", 1}}, kTime);
  for (std::size_t bit = 8 * one.size(); bit < 8 * two.size(); ++bit) {
    std::string flipped = two;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    write(flipped);
    ASSERT_EQ(message_of([&] { events_until(file, 9); }),
              fmt::format("{}: the event at byte {} is damaged", file.string(), one.size()))
        << bit;
  }
}

}  // namespace
}  // namespace braid::apps
