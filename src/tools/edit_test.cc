#include "tools/edit.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/workspace.h"

namespace belljar::tools {
namespace {

using belljar::testing::mode_of;
using belljar::testing::set_mode;

class EditTest : public ::testing::Test {
 protected:
  // The content afterwards.
  std::string edited(const std::string& content, const std::string& from, const std::string& to,
                     bool all = false) {
    folders_.inside.write("file", content);
    result_ = edit(folders_.open(),
                   {.path = "file", .old_string = from, .new_string = to, .replace_all = all});
    EXPECT_TRUE(result_) << result_.error().message();
    return folders_.inside.read("file");
  }
  Failure fails(const EditCall& call) const {
    const std::string before = folders_.inside.read("file");
    const Result<EditResult> result = edit(folders_.open(), call);
    EXPECT_FALSE(result);
    EXPECT_FALSE(result.error().hint.empty()) << result.error().message();
    EXPECT_EQ(folders_.inside.read("file"), before);
    return result.error();
  }

  belljar::testing::WorkspaceFolders folders_;
  Result<EditResult> result_;
};

TEST_F(EditTest, replaces_what_is_there_once) {
  EXPECT_EQ(edited("a\nb\nc\n", "b", "x"), "a\nx\nc\n");
  EXPECT_EQ(result_->replacements, 1U);
  EXPECT_EQ(result_->line, 2U);
  EXPECT_EQ(edited("a\nb\nc\n", "a\nb\n", ""), "c\n");
  EXPECT_EQ(edited("a.b", "a.b", "$1 \\1 &"), "$1 \\1 &");  // nothing means anything else
}

TEST_F(EditTest, replaces_all_if_that_is_said) {
  EXPECT_EQ(edited("aXaXa", "a", "bb", true), "bbXbbXbb");
  EXPECT_EQ(result_->replacements, 3U);
  EXPECT_EQ(edited("aaaa", "aa", "a", true), "aa");  // not again in what it made
}

TEST_F(EditTest, none_is_an_error_that_says_why) {
  folders_.inside.write("file", "int  main() {\n\treturn 0;\n}\n");
  EXPECT_EQ(fails({.path = "file", .old_string = "long", .new_string = "x"}).kind, Kind::no_match);
  const Failure spaces = fails({.path = "file", .old_string = "int main()", .new_string = "x"});
  EXPECT_EQ(spaces.kind, Kind::no_match);
  EXPECT_NE(spaces.hint.find("spaces"), std::string::npos);
  const Failure numbers = fails({.path = "file", .old_string = "1: int", .new_string = "x"});
  EXPECT_NE(numbers.hint.find("line numbers"), std::string::npos);
}

TEST_F(EditTest, many_is_an_error_with_count_and_lines) {
  folders_.inside.write("file", "x\na\nx\nb x\n");
  const Failure many = fails({.path = "file", .old_string = "x", .new_string = "y"});
  EXPECT_EQ(many.kind, Kind::many_matches);
  EXPECT_NE(many.what.find("3 times"), std::string::npos);
  EXPECT_NE(many.what.find("1, 3, 4"), std::string::npos);
  std::string lots;
  for (int i = 0; i < 100; ++i) lots += "x\n";
  folders_.inside.write("file", lots);
  EXPECT_NE(fails({.path = "file", .old_string = "x", .new_string = "y"}).what.find("9, 10, …"),
            std::string::npos);
}

TEST_F(EditTest, line_ends_stay_as_they_are) {
  EXPECT_EQ(edited("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz"), "x\r\ny\r\nz\r\nc\r\n");
  EXPECT_EQ(edited("a\r\nb\r\n", "b", "c\nd"), "a\r\nc\r\nd\r\n");
  EXPECT_EQ(edited("a\r\nb\r\n", "a\r\nb", "c\r\nd"), "c\r\nd\r\n");
  EXPECT_EQ(edited("a\r\nb\n", "b\n", "c\n"), "a\r\nc\n");  // of both kinds: as it is said
  EXPECT_EQ(edited("a\nb", "a", "c"), "c\nb");              // no newline at the end
  EXPECT_EQ(edited("a\nb\n", "a", "c"), "c\nb\n");
  EXPECT_EQ(edited("\xef\xbb\xbf"
                   "a\n",
                   "a", "b"),
            "\xef\xbb\xbf"
            "b\n");
  EXPECT_EQ(edited("\xff a \xfe", "a", "b"), "\xff b \xfe");
}

TEST_F(EditTest, mode_is_kept) {
  folders_.inside.write("file", "a");
  set_mode(folders_ / "file", 0755);
  EXPECT_EQ(edited("a", "a", "b"), "b");
  EXPECT_EQ(mode_of(folders_ / "file"), mode_t{0755});
}

TEST_F(EditTest, calls_that_make_no_sense_are_refused) {
  folders_.inside.write("file", "a");
  EXPECT_EQ(fails({.path = "file", .old_string = "", .new_string = "b"}).kind, Kind::bad_argument);
  EXPECT_EQ(fails({.path = "file", .old_string = "a", .new_string = "a"}).kind, Kind::bad_argument);
  EXPECT_EQ(fails({.path = "missing", .old_string = "a", .new_string = "b"}).kind, Kind::not_found);
  EXPECT_EQ(fails({.path = ".", .old_string = "a", .new_string = "b"}).kind, Kind::not_a_file);
  EXPECT_EQ(fails({.path = "/etc/passwd", .old_string = "root", .new_string = "b"}).kind,
            Kind::outside);
  folders_.inside.write("file", std::string("a\0b", 3));
  EXPECT_EQ(fails({.path = "file", .old_string = "a", .new_string = "b"}).kind, Kind::binary);
}

TEST_F(EditTest, read_only_files_stay) {
  belljar::testing::Folder other;
  other.write("file", "a");
  const Workspace workspace = folders_.open({{.inside = "/other", .outside = other.path()}});
  const Result<EditResult> result =
      edit(workspace, {.path = "/other/file", .old_string = "a", .new_string = "b"});
  EXPECT_EQ(result.error().kind, Kind::read_only);
  EXPECT_EQ(other.read("file"), "a");
}

TEST_F(EditTest, too_large_is_refused_before_and_after) {
  folders_.inside.write("file", std::string(kMaxEditBytes + 1, 'a'));
  EXPECT_EQ(fails({.path = "file", .old_string = "a", .new_string = "b", .replace_all = true}).kind,
            Kind::too_large);
  folders_.inside.write("file", std::string(100'000, 'a'));
  EXPECT_EQ(fails({.path = "file",
                   .old_string = "a",
                   .new_string = std::string(1'000'000, 'b'),
                   .replace_all = true})
                .kind,
            Kind::too_large);
}

// Somebody appends all the time. Whatever edit says has happened has happened, and nothing that
// was appended is lost.
TEST_F(EditTest, what_others_wrote_meanwhile_is_not_lost) {
  const Workspace workspace = folders_.open();
  int edits = 0;
  int changed = 0;
  for (int round = 0; round < 300; ++round) {
    folders_.inside.write("file", "begin\n" + std::string(100'000, 'x'));
    std::jthread appends([&] { folders_.inside.write("file", "begin, another\n"); });
    const Result<EditResult> result =
        edit(workspace, {.path = "file", .old_string = "begin", .new_string = "end"});
    appends.join();
    if (result) {
      ++edits;
    } else {
      EXPECT_TRUE(result.error().kind == Kind::changed || result.error().kind == Kind::no_match)
          << result.error().message();
      ++changed;
      EXPECT_EQ(folders_.inside.read("file"), "begin, another\n");
    }
  }
  EXPECT_EQ(edits + changed, 300);
}

}  // namespace
}  // namespace belljar::tools
