#include "tools/needle.h"

#include <gtest/gtest.h>
#include <re2/re2.h>

#include <random>

namespace belljar::tools {
namespace {

TEST(RequiredText, is_what_every_match_holds) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"hello", "hello"},
      {"hello.*world", "hello"},
      {"a.*longer", "longer"},
      {"colou?r", "colo"},
      {"ab*c", "a"},
      {"ab+c", "ab"},
      {"ab{2}c", "a"},
      {"foo|bar", ""},
      {"(foo|bar)baz", "baz"},
      {"(?i)foo", ""},
      {"(?:x)foo", "foo"},
      {"[abc]def", "def"},
      {"[]x]def", "def"},
      {"[[:alpha:]]def", ""},
      {"\\bword\\b", "word"},
      {"std::string\\(", "std::string("},
      {"\\x41bc", ""},
      {"\\Qa.b\\E", ""},
      {"^begin$", "begin"},
      {"é?abc", "abc"},
      {"caf\xc3\xa9*x", "caf"},
      {"((a)b)cd", "cd"},
      {"", ""},
  };
  for (const auto& [pattern, text] : cases) EXPECT_EQ(required_text(pattern), text) << pattern;
}

std::vector<std::size_t> lines(const Needle& needle, std::string_view block) {
  std::vector<std::size_t> found;
  std::size_t from = 0;
  while (from < block.size()) {
    const std::size_t at = needle.find(block, from);
    if (at == block.npos) break;
    EXPECT_GE(at, from);
    found.push_back(static_cast<std::size_t>(std::ranges::count(block.substr(0, at), '\n')));
    from = std::min(block.find('\n', at), block.size()) + 1;
  }
  return found;
}

using Lines = std::vector<std::size_t>;

TEST(Needle, finds_lines) {
  const std::string_view block = "one\ntwo\n\nthree one\nlast";
  EXPECT_EQ(lines(*Needle::compile("one"), block), (Lines{0, 3}));
  EXPECT_EQ(lines(*Needle::compile("^one"), block), (Lines{0}));
  EXPECT_EQ(lines(*Needle::compile("one$"), block), (Lines{0, 3}));
  EXPECT_EQ(lines(*Needle::compile("^$"), block), (Lines{2}));
  EXPECT_EQ(lines(*Needle::compile("[a-z]+$"), block), (Lines{0, 1, 3, 4}));
  EXPECT_EQ(lines(*Needle::compile("ONE", Case::ignored), block), (Lines{0, 3}));
  EXPECT_EQ(lines(*Needle::compile("x*"), block), (Lines{0, 1, 2, 3, 4}));
  EXPECT_EQ(lines(*Needle::compile("x*"), "a\n"), (Lines{0}));
  EXPECT_EQ(lines(*Needle::compile("o[^x]*t"), block), (Lines{}));  // not over the end of a line
  EXPECT_EQ(lines(*Needle::compile("e\\so"), block), (Lines{3}));
}

TEST(Needle, that_cannot_be_read_is_an_error) {
  for (const std::string& pattern :
       {std::string(), std::string("a("), std::string("[a"), std::string("a)(b"),
        std::string("(?=a)"), std::string("(a)\\1"), std::string("\xff"), std::string(5000, 'a'),
        std::string("((a{100}){100}){100}")}) {
    const Result<Needle> needle = Needle::compile(pattern);
    ASSERT_FALSE(needle) << pattern;
    EXPECT_EQ(needle.error().kind, Kind::bad_pattern);
    EXPECT_FALSE(needle.error().hint.empty());
  }
}

TEST(Needle, takes_no_longer_for_patterns_that_backtrack_elsewhere) {
  const Result<Needle> needle = Needle::compile("(a+)+(a|a)*b");
  EXPECT_EQ(needle->find(std::string(100'000, 'a'), 0), std::string::npos);
}

// Whatever way it takes, it finds what RE2 finds line by line.
TEST(Needle, finds_what_re2_finds) {
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): the same patterns each time
  const std::vector<std::string> pieces = {"a",      "b",      "ab", "\\w", ".", "[ab]", "(a|b)",
                                           "c?",     "b*",     "a+", "^",   "$", "\\b",  "é",
                                           "(?:ab)", "c{1,2}", "|",  "\\.", " "};
  std::size_t found_any = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string pattern;
    for (std::size_t i = 0; i < 1 + random() % 6; ++i) pattern += pieces[random() % pieces.size()];
    const Result<Needle> needle = Needle::compile(pattern);
    if (!needle) continue;
    std::string block;
    Lines expected;
    const RE2 regex(pattern);
    const std::string letters = "aabbc. \xc3";
    for (std::size_t line = 0; line < 8; ++line) {
      std::string text;
      for (std::size_t i = 0; i < random() % 8; ++i) text += letters[random() % letters.size()];
      if (RE2::PartialMatch(text, regex)) expected.push_back(line);
      block += text + "\n";
    }
    ASSERT_EQ(lines(*needle, block), expected) << pattern << "\n" << block;
    found_any += expected.empty() ? 0U : 1U;
  }
  EXPECT_GT(found_any, 500U);
}

}  // namespace
}  // namespace belljar::tools
