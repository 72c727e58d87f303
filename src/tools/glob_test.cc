#include "tools/glob.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/workspace.h"

namespace belljar::tools {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class GlobTest : public ::testing::Test {
 protected:
  void make(const std::string& name, const std::string& text = "x") const {
    fs::create_directories((folders_ / name).parent_path());
    folders_.inside.write(name, text);
  }
  std::vector<std::string> found(const GlobCall& call, const Workspace& workspace) const {
    const Result<GlobResult> result = glob(workspace, call);
    EXPECT_TRUE(result) << result.error().message();
    std::vector<std::string> paths;
    if (!result) return paths;
    for (const std::string& path : result->paths)
      paths.push_back(path.starts_with("/workspace/") ? path.substr(11) : path);
    return paths;
  }
  std::vector<std::string> found(const std::string& pattern) const {
    return found({.pattern = pattern}, folders_.open());
  }
  Kind fails(const GlobCall& call) const {
    const Result<GlobResult> result = glob(folders_.open(), call);
    EXPECT_FALSE(result) << call.pattern;
    EXPECT_FALSE(result.error().hint.empty());
    return result.error().kind;
  }

  belljar::testing::WorkspaceFolders folders_;
};

TEST_F(GlobTest, finds_what_matches) {
  for (const char* name : {"a.cc", "src/b.cc", "src/deep/er/c.cc", "src/d.h", ".hidden/e.cc"})
    make(name);
  EXPECT_THAT(found("*.cc"), UnorderedElementsAre("a.cc"));
  EXPECT_THAT(found("**/*.cc"),
              UnorderedElementsAre("a.cc", "src/b.cc", "src/deep/er/c.cc", ".hidden/e.cc"));
  EXPECT_THAT(found("src/*.{cc,h}"), UnorderedElementsAre("src/b.cc", "src/d.h"));
  EXPECT_THAT(found("src/**"), UnorderedElementsAre("src/b.cc", "src/d.h", "src/deep/er/c.cc"));
  EXPECT_THAT(found("/workspace/src/**/*.cc"),
              UnorderedElementsAre("src/b.cc", "src/deep/er/c.cc"));
  EXPECT_THAT(found("/workspace/a.cc"), ElementsAre("a.cc"));
  EXPECT_THAT(found({.pattern = "*.cc", .path = "src"}, folders_.open()), ElementsAre("src/b.cc"));
  EXPECT_THAT(found("none"), IsEmpty());
}

TEST_F(GlobTest, the_newest_come_first) {
  for (const char* name : {"old", "new", "middle"}) make(name);
  const fs::file_time_type now = fs::file_time_type::clock::now();
  fs::last_write_time(folders_ / "old", now - std::chrono::hours(2));
  fs::last_write_time(folders_ / "middle", now - std::chrono::hours(1));
  EXPECT_THAT(found("*"), ElementsAre("new", "middle", "old"));
}

TEST_F(GlobTest, ignored_files_are_left_out) {
  make(".gitignore", "*.o\nbuild/\n/top\n!keep.o\n");
  make("src/.gitignore", "generated\n!important.o\n");
  for (const char* name : {"a.o", "keep.o", "build/x", "top", "src/top", "src/a.o", "src/generated",
                           "src/important.o", "src/build/y", ".git/config", "a"})
    make(name);
  EXPECT_THAT(found("**"), UnorderedElementsAre(".gitignore", "src/.gitignore", "keep.o", "src/top",
                                                "src/important.o", "a"));
  // From below, what is above counts too; and who names an ignored folder means it.
  EXPECT_THAT(found({.pattern = "**", .path = "src"}, folders_.open()),
              UnorderedElementsAre("src/.gitignore", "src/top", "src/important.o"));
  EXPECT_THAT(found({.pattern = "**", .path = "build"}, folders_.open()), ElementsAre("build/x"));
}

TEST_F(GlobTest, no_more_than_1000_come_and_they_are_the_newest) {
  const fs::file_time_type now = fs::file_time_type::clock::now();
  for (int i = 0; i < 1500; ++i) {
    const std::string name = "d" + std::to_string(i % 7) + "/f" + std::to_string(i);
    make(name);
    fs::last_write_time(folders_ / name, now - std::chrono::seconds(i));
  }
  const Result<GlobResult> result = glob(folders_.open(), {.pattern = "**"});
  ASSERT_EQ(result->paths.size(), kMaxGlobbed);
  EXPECT_EQ(result->total, 1500U);
  EXPECT_TRUE(result->truncated);
  for (std::size_t i = 0; i < kMaxGlobbed; ++i)
    ASSERT_TRUE(result->paths[i].ends_with("/f" + std::to_string(i)));
}

TEST_F(GlobTest, many_files_of_one_folder_are_all_found) {
  for (int i = 0; i < 3000; ++i) make("f" + std::to_string(i));
  for (int round = 0; round < 20; ++round)
    ASSERT_EQ(glob(folders_.open(), {.pattern = "*"})->total, 3000U);
}

TEST_F(GlobTest, symlinks_and_what_is_no_file_are_passed_over) {
  make("file");
  folders_.link("link", "file");
  folders_.link("out", folders_.outside.path());
  folders_.link("loop", ".");
  ASSERT_EQ(::mkfifo((folders_ / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(found("**"), ElementsAre("file"));
}

TEST_F(GlobTest, work_is_bounded_and_that_is_said) {
  for (int i = 0; i < 300; ++i) make("d" + std::to_string(i) + "/f");
  const Result<GlobResult> few =
      glob(folders_.open(), {.pattern = "**", .limits = {.entries = 100}});
  EXPECT_TRUE(few->truncated);
  EXPECT_LT(few->total, 300U);
  EXPECT_FALSE(glob(folders_.open(), {.pattern = "**"})->truncated);
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_TRUE(glob(folders_.open(), {.pattern = "**", .stop = stopped.get_token()})->truncated);
  EXPECT_TRUE(
      glob(folders_.open(), {.pattern = "**", .limits = {.time = std::chrono::milliseconds(-1)}})
          ->truncated);
}

TEST_F(GlobTest, depth_is_bounded) {
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += "d/";
  make(deep + "file");
  const Result<GlobResult> result = glob(folders_.open(), {.pattern = "**/file"});
  EXPECT_EQ(result->total, 0U);
  EXPECT_TRUE(result->truncated);
}

TEST_F(GlobTest, names_of_any_bytes_are_listed_safely) {
  make("new\nline");
  make("\xff");
  const Result<GlobResult> result = glob(folders_.open(), {.pattern = "*"});
  EXPECT_EQ(result->total, 2U);
  EXPECT_EQ(std::ranges::count(result->text, '\n'), 2);
  EXPECT_EQ(result->text.find('\xff'), std::string::npos);
}

TEST_F(GlobTest, nested_roots_are_taken_from_their_own_place) {
  belljar::testing::Folder skills;
  skills.write("SKILL.md", "x");
  make("skills/beneath");
  make("keys/key");
  const Workspace workspace =
      folders_.open({{.inside = "/workspace/skills", .outside = skills.path()},
                     {.inside = "/workspace/more/", .outside = skills.path()},
                     {.inside = "/workspace/keys", .outside = folders_ / "keys", .hidden = true}});
  EXPECT_THAT(found({.pattern = "**"}, workspace),
              UnorderedElementsAre("skills/SKILL.md", "more/SKILL.md"));
  fs::rename(folders_ / "keys", folders_ / "moved");
  EXPECT_THAT(found({.pattern = "**"}, workspace),
              UnorderedElementsAre("skills/SKILL.md", "more/SKILL.md"));
}

TEST_F(GlobTest, rules_leave_files_out) {
  make("a.pem");
  make("b");
  const Workspace workspace =
      folders_.open({}, *PathRules::make({{PathRule::Says::deny, "*.pem"}}));
  EXPECT_THAT(found({.pattern = "**"}, workspace), ElementsAre("b"));
}

TEST_F(GlobTest, calls_that_make_no_sense_are_refused) {
  make("file");
  EXPECT_EQ(fails({.pattern = ""}), Kind::bad_pattern);
  EXPECT_EQ(fails({.pattern = "[a"}), Kind::bad_pattern);
  EXPECT_EQ(fails({.pattern = "../*"}), Kind::bad_pattern);
  EXPECT_EQ(fails({.pattern = "*", .path = "missing"}), Kind::not_found);
  EXPECT_EQ(fails({.pattern = "*", .path = "file"}), Kind::not_a_folder);
  EXPECT_EQ(fails({.pattern = "*", .path = "/etc"}), Kind::outside);
  EXPECT_EQ(fails({.pattern = "/etc/*"}), Kind::outside);
}

}  // namespace
}  // namespace belljar::tools
