#include "server/multipart.h"

#include <gtest/gtest.h>

#include "server/skill_archive.h"

namespace belljar::server {
namespace {

TEST(Multipart, boundaries_are_found) {
  EXPECT_EQ(boundary_in("multipart/form-data; boundary=abc"), "abc");
  EXPECT_EQ(boundary_in("Multipart/Form-Data; charset=x; boundary=\"a b;c\""), "a b;c");
  EXPECT_EQ(boundary_in("application/json; boundary=abc"), "");
  EXPECT_EQ(boundary_in("multipart/form-data"), "");
}

TEST(Multipart, parts_are_taken_apart) {
  const Result<std::vector<Part>> parts = parse_multipart(
      "--X\r\nContent-Disposition: form-data; name=\"files\"; filename=\"a \\\"b\"\r\n"
      "Content-Type: text/plain\r\n\r\nhello\r\n--Y\r\n\r\n--X\r\n"
      "content-disposition: form-data; name=n\r\n\r\n\r\n--X--\r\n",
      "X");
  ASSERT_TRUE(parts.has_value());
  ASSERT_EQ(parts->size(), 2U);
  EXPECT_EQ((*parts)[0].name, "files");
  EXPECT_EQ((*parts)[0].filename, "a \"b");
  EXPECT_EQ((*parts)[0].content, "hello\r\n--Y\r\n");
  EXPECT_EQ((*parts)[1].name, "n");
  EXPECT_EQ((*parts)[1].content, "");
}

TEST(Multipart, what_is_none_is_an_error) {
  for (std::string_view body : {"", "--X", "--X\r\n", "--X\r\nhead only\r\n--X--", "--Xx\r\n",
                                "--X\r\na: b\r\n\r\nno end", "junk--X\r\n\r\n\r\n--X--"})
    EXPECT_FALSE(parse_multipart(body, "X").has_value()) << body;
  EXPECT_FALSE(parse_multipart("--\r\n\r\n\r\n----", "").has_value());
}

TEST(SkillPath, only_plain_relative_names) {
  for (std::string_view good : {"a", "SKILL.md", "a/b/c.txt", "ü", ".hidden", "a b"})
    EXPECT_TRUE(check_skill_path(good).has_value()) << good;
  for (std::string_view bad : {"", "/a", "a/", "a//b", ".", "..", "a/../b", "a\\b", "a\nb", "\xff",
                               "1/2/3/4/5/6/7/8/9/10/11"})
    EXPECT_FALSE(check_skill_path(bad).has_value()) << bad;
}

}  // namespace
}  // namespace belljar::server
