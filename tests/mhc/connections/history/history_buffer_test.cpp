#include <braid/mhc/connections/history/history_buffer.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tests/mhc/support.h>

namespace braid::mhc::history_buffer_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(HistoryBuffer, KeepsTheLastStatesOldestFirst) {
  HistoryBuffer history(3);
  EXPECT_EQ(history.size(), 0);
  for (int i = 0; i < 5; ++i) history.append(scalar(i));
  ASSERT_EQ(history.size(), 3);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(history.get()[i].value().item(), static_cast<double>(i + 2));
  history.clear();
  EXPECT_EQ(history.size(), 0);
  history.append(zeros({2}));  // another shape, now that it is empty
}

TEST(HistoryBuffer, CutsTheGradientWhenAskedTo) {
  for (const bool detached : {false, true}) {
    Tape tape;
    const Var x = tape.watch(scalar(2));
    HistoryBuffer history(2, detached);
    history.append(x);
    EXPECT_EQ(history.get().back().requires_grad(), !detached);
    tape.backward(x + history.get().back());
    EXPECT_EQ(tape.gradient(x).item(), detached ? 1 : 2);
  }
}

TEST(HistoryBuffer, IsAValue) {
  HistoryBuffer a(2);
  a.append(scalar(1));
  HistoryBuffer b = a;
  b.append(scalar(2));
  EXPECT_EQ(a.size(), 1);
}

TEST(HistoryBuffer, RejectsNoRoomAndOtherShapes) {
  EXPECT_THAT([] { HistoryBuffer(0); }, ThrowsMessage<ValueError>(HasSubstr("max_history must be >= 1 but is 0")));
  HistoryBuffer history(2);
  history.append(zeros({2, 3}));
  EXPECT_THAT(
      [&] {
        history.append(zeros({3, 2}));
      },
      ThrowsMessage<ShapeError>(
          HasSubstr("HistoryBuffer: x must have the shape [2, 3] of the states before it but has [3, 2]")));
}

}  // namespace
}  // namespace braid::mhc::history_buffer_test
