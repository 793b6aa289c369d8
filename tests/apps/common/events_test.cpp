#include "../../../apps/common/events.h"

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <braid/core/error.h>
#include <braid/nn/tensorboard.h>
#include <tests/support.h>

namespace braid::apps {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;
using nn::event_record;

constexpr double kTime = 1700000000.25;

struct Events : testing::Test {
  Events() { fs::create_directories(folder); }
  ~Events() override { fs::remove_all(folder); }

  void write(const std::string& bytes) const { std::ofstream(file, std::ios::binary) << bytes; }

  const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
  const fs::path folder = fs::path(testing::TempDir()) / ("braid_kept_events_" + test);
  const fs::path file = folder / "events.out.tfevents.test";
};

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

TEST_F(Events, HaveStepsOfAnySize) {
  for (const std::int64_t step : {127, 128, 129, 16383, 16384, 1 << 30}) {
    const std::string event = event_record(step, {{"x", 0.5}}, kTime);
    write(event);
    EXPECT_EQ(events_until(file, step), event);
    EXPECT_EQ(events_until(file, step - 1), "");
  }
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

TEST_F(Events, OfOtherWritersAreReadByTheirSteps) {
  const std::string other =  // step 2 among fields of all kinds
      "\x18\x00\x00\x00\x00\x00\x00\x00\xa3\x7f\x4b\x22\x10\x02\x4d\x01\x02\x03\x04\x51\x01\x01\x01"
      "\x01\x01\x01\x01\x01\x5a\x03\x61\x62\x63\x60\xff\x01\xdd\x5a\x11\x72"s;
  write(other);
  EXPECT_EQ(events_until(file, 2), other);
  EXPECT_EQ(events_until(file, 1), "");
}

TEST_F(Events, ThatAreNoMessagesAreRefused) {
  // Their checksums are right. A key without a value, bytes and a number beyond the end, a group, a varint without end,
  // a length of 2^64 - 1, which added to a place is the one before.
  const std::vector<std::string> records = {
      "\x01\x00\x00\x00\x00\x00\x00\x00\x01\x75\xde\x41\x10\x1f\x6f\xff\xca"s,
      "\x07\x00\x00\x00\x00\x00\x00\x00\xbb\xd7\x9f\x11\x10\x02\x5a\x09\x61\x62\x63\xbb\x04\xe2\x16"s,
      "\x03\x00\x00\x00\x00\x00\x00\x00\xb0\x99\x49\x0e\x4d\x01\x02\x85\x97\x87\x29"s,
      "\x04\x00\x00\x00\x00\x00\x00\x00\x42\x45\x52\x04\x5b\x10\x02\x5c\x5c\x95\xce\xd1"s,
      "\x0c\x00\x00\x00\x00\x00\x00\x00\xf4\xc8\xfe\x0a\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
      "\xff\x53\x63\xc6\x7d"s,
      "\x13\x00\x00\x00\x00\x00\x00\x00\x0c\x91\x32\x1b\x5a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
      "\x00\x00\x00\x00\x00\x00\x00\x00\x6a\x7e\xca\x4b"s};
  for (const std::string& bad : records) {
    write(bad);
    EXPECT_EQ(message_of([&] { events_until(file, 9); }), file.string() + ": the event at byte 0 is damaged");
  }
}

}  // namespace
}  // namespace braid::apps
