#include <braid/nn/tensorboard.h>

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <braid/core/error.h>
#include <tests/support.h>

namespace braid::nn::tensorboard_test {
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

TEST_F(Events, HaveTheBytesThatProtobufWrites) {
  // Stored from libprotobuf 3.21: step 0, which it leaves out; a negative step, no scalars; a tag of 130 bytes.
  EXPECT_EQ(event_record(0, {{"x", -1e-40}}, kTime),
            "\x15\x00\x00\x00\x00\x00\x00\x00\xd6\xab\x6b\x2b\x09\x00\x00\x10\x40\xfc\x54\xd9\x41\x2a\x0a"
            "\x0a\x08\x0a\x01\x78\x15\xc2\x16\x01\x80\xfa\x98\xe8\x5b"s);
  EXPECT_EQ(event_record(-3, {}, kTime),
            "\x14\x00\x00\x00\x00\x00\x00\x00\x5e\x3d\x29\x15\x09\x00\x00\x10\x40\xfc\x54\xd9\x41\x10\xfd"
            "\xff\xff\xff\xff\xff\xff\xff\xff\x01\x23\x3e\xc4\x57"s);
  EXPECT_EQ(event_record(std::int64_t{1} << 40, {{std::string(130, 'a'), INFINITY}}, kTime),
            "\xa0\x00\x00\x00\x00\x00\x00\x00\x2a\x55\x72\x25\x09\x00\x00\x10\x40\xfc\x54\xd9\x41\x10\x80"
            "\x80\x80\x80\x80\x20\x2a\x8d\x01\x0a\x8a\x01\x0a\x82\x01"s +
                std::string(130, 'a') + "\x15\x00\x00\x80\x7f\x0f\xf6\xdd\x9e"s);
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

TEST_F(Events, OfOtherWritersAreReadByTheirSteps) {
  const std::string other =  // step 2 among fields of all kinds
      "\x18\x00\x00\x00\x00\x00\x00\x00\xa3\x7f\x4b\x22\x10\x02\x4d\x01\x02\x03\x04\x51\x01\x01\x01"
      "\x01\x01\x01\x01\x01\x5a\x03\x61\x62\x63\x60\xff\x01\xdd\x5a\x11\x72"s;
  write(other);
  EXPECT_EQ(events_until(file, 2), other);
  EXPECT_EQ(events_until(file, 1), "");
}

TEST_F(Events, ThatAreNoMessagesAreRefused) {
  // Their checksums are right. A key without a value, bytes and a number beyond the end, a group, a varint without end.
  const std::vector<std::string> records = {
      "\x01\x00\x00\x00\x00\x00\x00\x00\x01\x75\xde\x41\x10\x1f\x6f\xff\xca"s,
      "\x07\x00\x00\x00\x00\x00\x00\x00\xbb\xd7\x9f\x11\x10\x02\x5a\x09\x61\x62\x63\xbb\x04\xe2\x16"s,
      "\x03\x00\x00\x00\x00\x00\x00\x00\xb0\x99\x49\x0e\x4d\x01\x02\x85\x97\x87\x29"s,
      "\x04\x00\x00\x00\x00\x00\x00\x00\x42\x45\x52\x04\x5b\x10\x02\x5c\x5c\x95\xce\xd1"s,
      "\x0c\x00\x00\x00\x00\x00\x00\x00\xf4\xc8\xfe\x0a\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
      "\xff\x53\x63\xc6\x7d"s};
  for (const std::string& bad : records) {
    write(bad);
    EXPECT_EQ(message_of([&] { events_until(file, 9); }), file.string() + ": the event at byte 0 is damaged");
  }
}

}  // namespace
}  // namespace braid::nn::tensorboard_test
