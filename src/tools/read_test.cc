#include "tools/read.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/workspace.h"

namespace belljar::tools {
namespace {

class ReadTest : public ::testing::Test {
 protected:
  ReadResult get(const ReadCall& call) const {
    Result<ReadResult> result = read(folders_.open(), call);
    EXPECT_TRUE(result) << result.error().message();
    return result.value_or(ReadResult{});
  }
  std::string text(const std::string& content, const ReadCall& call = {.path = "file"}) const {
    folders_.inside.write("file", content);
    return get(call).text;
  }
  Kind fails(const ReadCall& call) const {
    const Result<ReadResult> result = read(folders_.open(), call);
    EXPECT_FALSE(result);
    EXPECT_FALSE(result.error().hint.empty()) << result.error().message();
    return result.error().kind;
  }
  static std::string numbers(int count) {
    std::string text;
    for (int i = 1; i <= count; ++i) text += "line " + std::to_string(i) + "\n";
    return text;
  }

  belljar::testing::WorkspaceFolders folders_;
};

TEST_F(ReadTest, numbers_lines_from_one) {
  EXPECT_EQ(text("a\n\nb\n"), "1: a\n2: \n3: b\n");
  EXPECT_EQ(text("a\nb"), "1: a\n2: b\n");
  EXPECT_EQ(text("\n"), "1: \n");
  EXPECT_EQ(text(""), "(the file is empty)\n");
  EXPECT_EQ(text("a\r\nb\r\n"), "1: a\n2: b\n");
  EXPECT_EQ(text("\xef\xbb\xbf"
                 "a\n"),
            "1: a\n");
}

TEST_F(ReadTest, offset_and_limit_choose_lines) {
  const std::string content = numbers(10);
  EXPECT_EQ(text(content, {.path = "file", .offset = 10}), "10: line 10\n");
  EXPECT_EQ(text(content, {.path = "file", .offset = 2, .limit = 2}),
            "2: line 2\n3: line 3\n"
            "(lines 2 to 3 of 10; to go on, read with offset 4)\n");
  const ReadResult result = get({.path = "file", .offset = 9, .limit = 5});
  EXPECT_EQ(result.lines, 2U);
  EXPECT_EQ(result.total, 10U);
  EXPECT_FALSE(result.truncated);
}

TEST_F(ReadTest, no_more_than_2000_lines_come) {
  folders_.inside.write("file", numbers(5000));
  const ReadResult result = get({.path = "file", .limit = 4000});
  EXPECT_EQ(result.lines, kMaxReadLines);
  EXPECT_TRUE(result.truncated);
  EXPECT_TRUE(
      result.text.ends_with("(lines 1 to 2000 of 5000; to go on, read with offset 2001)\n"));
}

TEST_F(ReadTest, no_more_than_2000_characters_of_a_line_come) {
  std::string line;
  for (int i = 0; i < 2000; ++i) line += "é";
  EXPECT_EQ(text(line + "\nb\n"), "1: " + line + "\n2: b\n");
  EXPECT_EQ(text(line + "x\nb\n"), "1: " + line + "… (cut: the line has 4001 bytes)\n2: b\n");
  EXPECT_TRUE(get({.path = "file"}).truncated);
  const std::string huge(8'000'000, 'x');
  const std::string cut = text(huge + "\nb\n");
  EXPECT_TRUE(cut.starts_with("1: " + std::string(2000, 'x') + "… (cut"));
  EXPECT_TRUE(cut.ends_with("2: b\n"));
}

TEST_F(ReadTest, all_lines_together_are_bounded) {
  std::string content;
  for (int i = 0; i < 2000; ++i) content += std::string(1999, 'x') + "\n";
  folders_.inside.write("file", content);
  const ReadResult result = get({.path = "file"});
  EXPECT_LE(result.text.size(), kMaxReadBytes + 200);
  EXPECT_TRUE(result.truncated);
  // It goes on where it ended.
  const ReadResult next = get({.path = "file", .offset = result.lines + 1});
  EXPECT_TRUE(next.text.starts_with(std::to_string(result.lines + 1) + ": x"));
}

TEST_F(ReadTest, what_is_no_utf8_is_repaired) {
  EXPECT_EQ(text("a\xff"
                 "b\n"),
            "1: a\xef\xbf\xbd"
            "b\n");
}

TEST_F(ReadTest, binary_files_are_refused) {
  folders_.inside.write("file", std::string("a\0b", 3));
  EXPECT_EQ(fails({.path = "file"}), Kind::binary);
}

TEST_F(ReadTest, images_come_as_images) {
  using namespace std::string_literals;
  const std::vector<std::pair<std::string, std::string>> images = {
      {"\x89PNG\r\n\x1a\n\0"s, "image/png"},
      {"\xff\xd8\xff\xe0"s, "image/jpeg"},
      {"GIF89a"s, "image/gif"},
      {"RIFF\1\0\0\0WEBPVP8 "s, "image/webp"}};
  for (const auto& [bytes, type] : images) {
    folders_.inside.write("image", bytes);
    const ReadResult result = get({.path = "image"});
    EXPECT_EQ(result.image_mime, type);
    EXPECT_TRUE(result.image_base64);
  }
  folders_.inside.write("image", "GIF89a");
  EXPECT_EQ(get({.path = "image"}).image_base64, "R0lGODlh");
  // A file of another name is no image, whatever it is called.
  folders_.inside.write("text.png", "GIF8 is a format\n");
  EXPECT_FALSE(get({.path = "text.png"}).image_mime);
  EXPECT_EQ(get({.path = "text.png"}).text, "1: GIF8 is a format\n");
}

TEST_F(ReadTest, large_images_are_refused) {
  folders_.inside.write("image", "GIF89a" + std::string(kMaxImageBytes - 6, 'x'));
  EXPECT_TRUE(get({.path = "image"}).image_base64);
  folders_.inside.write("image", "GIF89a" + std::string(kMaxImageBytes, 'x'));
  EXPECT_EQ(fails({.path = "image"}), Kind::too_large);
}

TEST_F(ReadTest, arguments_that_make_no_sense_are_refused) {
  folders_.inside.write("file", "a\nb\n");
  EXPECT_EQ(fails({.path = "file", .offset = 0}), Kind::bad_argument);
  EXPECT_EQ(fails({.path = "file", .limit = 0}), Kind::bad_argument);
  EXPECT_EQ(fails({.path = "file", .offset = 3}), Kind::bad_argument);
  EXPECT_EQ(fails({.path = "file", .offset = ~std::uint64_t{0}}), Kind::bad_argument);
  EXPECT_EQ(fails({.path = "missing"}), Kind::not_found);
  EXPECT_EQ(fails({.path = "."}), Kind::not_a_file);
  EXPECT_EQ(fails({.path = "/etc/passwd"}), Kind::outside);
}

TEST_F(ReadTest, a_file_that_changes_meanwhile_is_read_to_some_end) {
  folders_.inside.write("file", numbers(100'000));
  std::jthread changes([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::filesystem::resize_file(folders_ / "file", 10);
      folders_.inside.write("file", numbers(100'000));
    }
  });
  for (int i = 0; i < 50; ++i)
    (void)read(folders_.open(), {.path = "file", .offset = 1});  // it ends, and nothing breaks
}

}  // namespace
}  // namespace belljar::tools
