#include "cli/terminal_filter.h"

#include <gtest/gtest.h>

namespace belljar::cli {
namespace {

std::string filtered(std::string_view bytes) { return TerminalFilter().pass(bytes); }

TEST(TerminalFilter, passes_text_colours_and_movements) {
  for (std::string_view text : {"plain é\n\ttext\r\n", "\x1b[1;31mred\x1b[0m", "50%\r\x1b[K51%",
                                "\x1b[2A\x1b[38;2;1;2;3mx"})
    EXPECT_EQ(filtered(text), text);
}

TEST(TerminalFilter, stops_what_changes_more_than_the_picture) {
  EXPECT_EQ(filtered("a\x1b]0;title\ab"), "ab");        // the title
  EXPECT_EQ(filtered("a\x1b]52;c;aGk=\x1b\\b"), "ab");  // the clipboard
  EXPECT_EQ(filtered("a\x1bP$qm\x1b\\b"), "ab");        // answers as if it were typed
  EXPECT_EQ(filtered("a\x1b[6n\x1b[c\x1b[>0q"
                     "b"),
            "ab");                                      // the same
  EXPECT_EQ(filtered("a\x1b[?1049h\x1b[?25lb"), "ab");  // modes
  EXPECT_EQ(filtered("a\x1b(0b"), "ab");                // character sets
  EXPECT_EQ(filtered("a\x1b"
                     "cb"),
            "ab");  // reset
  EXPECT_EQ(filtered("a\xc2\x9b"
                     "31mb"),
            "a31mb");  // the one-byte form of ESC [
  EXPECT_EQ(filtered("a\x9b\x9d"
                     "0;xb"),
            "a0;xb");  // the same, as some terminals know it
  EXPECT_EQ(filtered(std::string("a\0\x0e\x7f"
                                 "b",
                                 5)),
            "ab");
}

TEST(TerminalFilter, passes_characters_of_any_length) {
  for (std::string_view text : {"é€😀", "ÀÿĀߟ", "\xc2\xa0\xc2\xbf"})
    EXPECT_EQ(filtered(text), text);
}

TEST(TerminalFilter, loses_no_more_than_a_line) {
  EXPECT_EQ(filtered("a\x1b]0;never ended\nb\n"), "ab\n");
}

TEST(TerminalFilter, knows_sequences_that_come_in_pieces) {
  TerminalFilter filter;
  std::string out;
  for (char c : std::string_view("a\x1b]0;x\x1b\\b\x1b[31mc")) out += filter.pass({&c, 1});
  EXPECT_EQ(out, "ab\x1b[31mc");
}

TEST(TerminalFilter, is_not_led_astray_by_an_escape_inside_another) {
  EXPECT_EQ(filtered("\x1b[3\x1b]0;x\ay"), "y");
  EXPECT_EQ(filtered("\x1b]0;\x1b[31mstill the title\ay"), "y");
  EXPECT_EQ(filtered("\x1b[" + std::string(100, '1') + "mx").find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace belljar::cli
