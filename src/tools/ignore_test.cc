#include "tools/ignore.h"

#include <gtest/gtest.h>

namespace belljar::tools {
namespace {

struct Case {
  std::string_view lines, path;
  bool folder;
  std::optional<bool> ignored;
};

// By gitignore(5).
TEST(Ignore, says_what_git_says) {
  for (const Case& c : std::vector<Case>{
           {"*.o", "a.o", false, true},
           {"*.o", "src/a.o", false, true},
           {"*.o", "a.cc", false, {}},
           {"build", "src/build", true, true},
           {"build/", "build", true, true},
           {"build/", "build", false, {}},
           {"/build", "build", true, true},
           {"/build", "src/build", true, {}},
           {"src/gen", "src/gen", true, true},
           {"src/gen", "a/src/gen", true, {}},
           {"**/gen", "a/b/gen", true, true},
           {"a/**/gen", "a/gen", true, true},
           {"a/**", "a/x", false, true},
           {"a/**", "a", true, {}},
           {"*.o\n!keep.o", "keep.o", false, false},
           {"!keep.o\n*.o", "keep.o", false, true},
           {"# a comment", "# a comment", false, {}},
           {"\\#file", "#file", false, true},
           {"\\!file", "!file", false, true},
           {"file   ", "file", false, true},
           {"file\\ ", "file ", false, true},
           {"a.txt\r\nb.txt\r\n", "b.txt", false, true},
           {"\xef\xbb\xbf*.o", "x.o", false, true},
           {"[a", "[a", false, {}},
           {"{a,b}", "a", false, {}},
           {"{a,b}", "{a,b}", false, true},
           {"", "a", false, {}},
           {"/", "a", true, {}},
           {"a//", "a", true, {}},
           {"a//b", "a/b", false, {}},
           {"./a", "a", false, {}},
           {"*", "anything", false, true},
           {"foo/*", "foo/bar", false, true},
           {"foo/*", "foo/bar/baz", false, {}},
       })
    EXPECT_EQ(Ignore::parse(c.lines).ignores(c.path, c.folder ? Entry::folder : Entry::file),
              c.ignored)
        << c.lines << " on " << c.path;
}

TEST(Ignore, of_an_inner_folder_comes_first) {
  const auto top = std::make_shared<const IgnoreChain>(
      IgnoreChain{.above = nullptr, .ignore = Ignore::parse("*.log\n/only"), .depth = 0});
  const IgnoreChain inner{.above = top, .ignore = Ignore::parse("!kept.log\n/here"), .depth = 4};
  EXPECT_TRUE(is_ignored(&inner, "sub/a.log", Entry::file));
  EXPECT_FALSE(is_ignored(&inner, "sub/kept.log", Entry::file));
  EXPECT_TRUE(is_ignored(&inner, "sub/here", Entry::file));
  EXPECT_FALSE(is_ignored(&inner, "sub/only", Entry::file));
  EXPECT_TRUE(is_ignored(top.get(), "only", Entry::file));
  EXPECT_FALSE(is_ignored(nullptr, "a.log", Entry::file));
}

TEST(Ignore, with_too_many_lines_keeps_the_first) {
  std::string lines;
  for (std::size_t i = 0; i < kMaxIgnoreLines; ++i) lines += "x" + std::to_string(i) + "\n";
  const Ignore ignore = Ignore::parse(lines + "last\n");
  EXPECT_EQ(ignore.ignores("x0", Entry::file), true);
  EXPECT_EQ(ignore.ignores("last", Entry::file), std::nullopt);
}

}  // namespace
}  // namespace belljar::tools
