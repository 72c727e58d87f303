#include "session/frames.h"

#include <gtest/gtest.h>

namespace belljar::session {
namespace {

TEST(Frames, come_out_as_they_went_in) {
  FrameReader reader(100);
  ASSERT_TRUE(reader.feed(frame("one") + frame("") + frame("three")));
  EXPECT_EQ(reader.next(), "one");
  EXPECT_EQ(reader.next(), "");
  EXPECT_EQ(reader.next(), "three");
  EXPECT_EQ(reader.next(), std::nullopt);
}

TEST(Frames, may_come_byte_by_byte) {
  FrameReader reader(100);
  for (char byte : frame("slow")) {
    EXPECT_EQ(reader.next(), std::nullopt);
    ASSERT_TRUE(reader.feed({&byte, 1}));
  }
  EXPECT_EQ(reader.next(), "slow");
}

TEST(Frames, that_are_too_large_are_refused_before_they_are_kept) {
  FrameReader reader(100);
  EXPECT_FALSE(reader.feed(std::string_view("\xff\xff\xff\xff", 4)));
  EXPECT_FALSE(reader.feed("more"));
  EXPECT_EQ(reader.next(), std::nullopt);
}

TEST(Frames, that_are_too_large_do_not_take_the_ones_before_along) {
  FrameReader reader(100);
  ASSERT_TRUE(reader.feed(frame("fine") + std::string("\xff\xff\xff\xff", 4)));
  EXPECT_EQ(reader.next(), "fine");
  EXPECT_EQ(reader.next(), std::nullopt);
  EXPECT_FALSE(reader.feed("x"));
}

TEST(Frames, of_the_largest_size_pass) {
  FrameReader reader(100);
  ASSERT_TRUE(reader.feed(frame(std::string(100, 'x'))));
  EXPECT_EQ(reader.next(), std::string(100, 'x'));
}

}  // namespace
}  // namespace belljar::session
