#include "server/front_matter.h"

#include <gtest/gtest.h>

namespace belljar::server {
namespace {

TEST(FrontMatter, is_what_stands_between_two_lines) {
  for (const char* text :
       {"---\na: 1\n---\nrest\n---\n", "---\na: 1\n---", "\xef\xbb\xbf---\na: 1\n--- \n"})
    EXPECT_EQ(front_matter(text, 1024), "a: 1\n") << text;
  EXPECT_EQ(front_matter("---\r\na: 1\r\n---\r\n", 1024), "a: 1\r\n");
  EXPECT_EQ(front_matter("---\n---\n", 1024), "");
}

TEST(FrontMatter, what_is_none_is_refused) {
  for (const char* text :
       {"", "a: 1\n---\n", "---\na: 1\n", "---", "---\na: 1\n---- \n", " ---\n---\n"})
    EXPECT_FALSE(front_matter(text, 1024)) << text;
}

TEST(FrontMatter, has_a_length_and_few_brackets) {
  const auto of = [](const std::string& yaml) {
    return front_matter("---\n" + yaml + "\n---\n", 1024);
  };
  EXPECT_TRUE(of(std::string(1023, 'x')));
  EXPECT_FALSE(of(std::string(1024, 'x')));
  EXPECT_TRUE(of(std::string(200, '[')));
  EXPECT_FALSE(of(std::string(201, '{')));
}

}  // namespace
}  // namespace belljar::server
