#include <braid/nn/tensorboard.h>

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

namespace braid::nn::tensorboard_test {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

constexpr double kTime = 1700000000.25;

struct Events : testing::Test {
  Events() { fs::create_directories(folder); }
  ~Events() override { fs::remove_all(folder); }

  std::string read() const { return (std::stringstream() << std::ifstream(file, std::ios::binary).rdbuf()).str(); }

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

}  // namespace
}  // namespace braid::nn::tensorboard_test
