#include "tools/pattern.h"

#include <gtest/gtest.h>

namespace belljar::tools {
namespace {

bool matches(std::string_view pattern, std::string_view path) {
  const Result<Pattern> parsed = Pattern::parse(pattern);
  EXPECT_TRUE(parsed) << pattern;
  return parsed && parsed->matches(path);
}

struct Case {
  std::string_view pattern, path;
  bool matches;
};

TEST(Pattern, matches_as_a_shell_would) {
  for (const Case& c : std::vector<Case>{
           {"a", "a", true},
           {"a", "b", false},
           {"a", "a/b", false},
           {"*", "abc", true},
           {"*", "a/b", false},
           {"*", ".hidden", true},
           {"*.cc", "a.cc", true},
           {"*.cc", ".cc", true},
           {"*.cc", "a.cch", false},
           {"*.cc", "src/a.cc", false},
           {"a*c*e", "abcde", true},
           {"a*c*e", "ace", true},
           {"a*c*e", "abde", false},
           {"*a*a*b", "aaaab", true},
           {"?", "a", true},
           {"?", "", false},
           {"??", "a", false},
           {"?", "é", true},
           {"?", "\xff", true},
           {"[abc]x", "bx", true},
           {"[!abc]x", "bx", false},
           {"[^abc]x", "dx", true},
           {"[a-c]", "b", true},
           {"[c-a]", "b", false},
           {"[]a]", "]", true},
           {"[!]a]", "b", true},
           {"[a-]", "-", true},
           {"[à-ü]", "é", true},
           {"[à-ü]", "e", false},
           {"[[:digit:]]", "7", true},
           {"[[:digit:][:upper:]_]", "_", true},
           {"[[:digit:][:upper:]]", "x", false},
           {"[\\]]", "]", true},
           {"\\*", "*", true},
           {"\\*", "a", false},
           {"src/*.cc", "src/a.cc", true},
           {"src/*.cc", "src/b/a.cc", false},
           {"./src/*.cc", "src/a.cc", true},
       })
    EXPECT_EQ(matches(c.pattern, c.path), c.matches) << c.pattern << " on " << c.path;
}

TEST(Pattern, two_stars_take_folders) {
  for (const Case& c : std::vector<Case>{
           {"**/a", "a", true},
           {"**/a", "b/a", true},
           {"**/a", "b/c/a", true},
           {"**/a", "ba", false},
           {"**", "a/b/c", true},
           {"a/**", "a/b", true},
           {"a/**", "a/b/c", true},
           {"a/**", "a", false},
           {"a/**/b", "a/b", true},
           {"a/**/b", "a/x/y/b", true},
           {"a/**/b", "a/x/y/c", false},
           {"**/**/a", "a", true},
           {"a/**/*.cc", "a/b/c.cc", true},
           {"a/**/b/**/c", "a/b/x/b/c", true},
           {"**/x/*.h", "a/x/x/b.h", true},
           {"**/x/*.h", "a/x/y/b.h", false},
           {"a**b", "aXXb", true},
           {"a**b", "a/b", false},
       })
    EXPECT_EQ(matches(c.pattern, c.path), c.matches) << c.pattern << " on " << c.path;
}

TEST(Pattern, braces_are_alternatives) {
  for (const Case& c : std::vector<Case>{
           {"*.{cc,h}", "a.h", true},
           {"*.{cc,h}", "a.c", false},
           {"{a,b{1,2}}", "b2", true},
           {"{a,b{1,2}}", "b", false},
           {"{a/b,c}/d", "a/b/d", true},
           {"{,x}a", "a", true},
           {"{a}", "a", true},
           {"\\{a,b\\}", "{a,b}", true},
           {"[{]", "{", true},
           {"a,b", "a,b", true},
           {"{a,b}{c,d}", "bd", true},
       })
    EXPECT_EQ(matches(c.pattern, c.path), c.matches) << c.pattern << " on " << c.path;
}

TEST(Pattern, that_cannot_be_read_is_an_error) {
  for (const std::string& text :
       {std::string("[a"), std::string("{a"), std::string("a}"), std::string("a\\"),
        std::string("[[:nothing:]]"), std::string("[[:digit:"), std::string("{a,b/[c}"),
        std::string(5000, 'a')}) {
    const Result<Pattern> parsed = Pattern::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().kind, Kind::bad_pattern) << text;
  }
}

TEST(Pattern, of_many_braces_is_refused_and_costs_nothing) {
  std::string bomb;
  for (int i = 0; i < 500; ++i) bomb += "{a,b}";
  EXPECT_FALSE(Pattern::parse(bomb));
  EXPECT_TRUE(Pattern::parse("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"));
}

// With a matcher that tries everything this would take longer than the universe has.
TEST(Pattern, of_many_stars_takes_no_time) {
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "*a";
  EXPECT_FALSE(matches(pattern + "b", std::string(4000, 'a')));
  std::string folders, path;
  for (int i = 0; i < 500; ++i) folders += "**/a/";
  for (int i = 0; i < 2000; ++i) path += "a/";
  EXPECT_FALSE(matches(folders + "b", path + "c"));
}

TEST(Pattern, knows_where_it_can_reach) {
  const Pattern pattern = *Pattern::parse("{src/*/x.cc,a/**/b}");
  EXPECT_TRUE(pattern.reaches_below(""));
  EXPECT_TRUE(pattern.reaches_below("src"));
  EXPECT_TRUE(pattern.reaches_below("src/any"));
  EXPECT_FALSE(pattern.reaches_below("src/any/more"));
  EXPECT_FALSE(pattern.reaches_below("other"));
  EXPECT_TRUE(pattern.reaches_below("a/x/y/z"));
}

}  // namespace
}  // namespace belljar::tools
