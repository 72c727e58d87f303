#include "session/output.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace belljar::session {
namespace {

TEST(Output, within_its_limit_is_kept_whole) {
  Output output(10);
  output.append("12345");
  output.append("67890");
  EXPECT_EQ(output.text(), "1234567890");
  EXPECT_EQ(output.cut(), 0U);
}

TEST(Output, beyond_its_limit_keeps_head_and_tail_and_says_how_much_was_cut) {
  for (std::size_t chunk : {1U, 3U, 7U, 26U}) {
    Output output(10);
    const std::string_view all = "abcdefghijklmnopqrstuvwxyz";
    for (std::size_t i = 0; i < all.size(); i += chunk) output.append(all.substr(i, chunk));
    EXPECT_EQ(output.text(), "abcde\n[... 16 bytes cut ...]\nvwxyz") << chunk;
    EXPECT_EQ(output.written(), 26U);
  }
}

TEST(Output, of_nothing_allowed_is_only_counted) {
  Output output(0);
  output.append("hello");
  EXPECT_EQ(output.text(), "\n[... 5 bytes cut ...]\n");
}

TEST(Output, can_be_given_another_limit) {
  Output output(10);
  output.append("12345");
  output.set_limit(20);
  output.append("1234567890");
  EXPECT_EQ(output.text(), "123451234567890");
  output.set_limit(4);
  EXPECT_EQ(output.text(), "12\n[... 11 bytes cut ...]\n90");
  output.set_limit(2);
  output.append("z");
  EXPECT_EQ(output.text(), "1\n[... 14 bytes cut ...]\nz");
}

TEST(Output, is_always_utf8) {
  Output output(100);
  output.append("\xff caf\xc3");
  output.append("\xa9");  // a character in two writes
  EXPECT_EQ(output.text(), "\xef\xbf\xbd café");
}

TEST(Output, cut_inside_a_character_is_repaired) {
  Output output(4);
  output.append("aéééé");
  EXPECT_TRUE(is_utf8(output.text())) << output.text();
}

}  // namespace
}  // namespace belljar::session
