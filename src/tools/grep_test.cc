#include "tools/grep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "support/workspace.h"

namespace belljar::tools {
namespace {

namespace fs = std::filesystem;
using belljar::testing::set_mode;
using ::testing::ElementsAre;

class GrepTest : public ::testing::Test {
 protected:
  void make(const std::string& name, const std::string& text) const {
    fs::create_directories((folders_ / name).parent_path());
    folders_.inside.write(name, text);
  }
  GrepResult get(const GrepCall& call) const {
    Result<GrepResult> result = grep(folders_.open(), call);
    EXPECT_TRUE(result) << result.error().message();
    return result.value_or(GrepResult{});
  }
  // "path:line" of each.
  std::vector<std::string> found(const GrepCall& call) const {
    std::vector<std::string> places;
    for (const GrepMatch& match : get(call).matches)
      places.push_back(match.path.substr(11) + ":" + std::to_string(match.line));
    return places;
  }
  Kind fails(const GrepCall& call) const {
    const Result<GrepResult> result = grep(folders_.open(), call);
    EXPECT_FALSE(result);
    EXPECT_FALSE(result.error().hint.empty());
    return result.error().kind;
  }

  belljar::testing::WorkspaceFolders folders_;
};

TEST_F(GrepTest, finds_lines_by_path_and_number) {
  make("b.txt", "one\ntwo\nthree two");
  make("a/c.txt", "two\r\n");
  EXPECT_THAT(found({.pattern = "two"}), ElementsAre("a/c.txt:1", "b.txt:2", "b.txt:3"));
  EXPECT_EQ(get({.pattern = "two"}).text,
            "/workspace/a/c.txt:1: two\n/workspace/b.txt:2: two\n/workspace/b.txt:3: three two\n");
  EXPECT_EQ(get({.pattern = "four"}).text, "no lines match\n");
  EXPECT_EQ(get({.pattern = "two"}).files, 2U);
  EXPECT_THAT(found({.pattern = "two", .path = "b.txt"}), ElementsAre("b.txt:2", "b.txt:3"));
  EXPECT_THAT(found({.pattern = "two", .path = "a"}), ElementsAre("a/c.txt:1"));
  EXPECT_THAT(found({.pattern = "TWO$", .path = "b.txt", .letters = Case::ignored}),
              ElementsAre("b.txt:2", "b.txt:3"));
}

TEST_F(GrepTest, include_chooses_files) {
  for (const char* name : {"a.cc", "src/b.cc", "src/c.h", "src/deep/d.cc"}) make(name, "x\n");
  EXPECT_THAT(found({.pattern = "x", .include = "*.cc"}),
              ElementsAre("a.cc:1", "src/b.cc:1", "src/deep/d.cc:1"));
  EXPECT_THAT(found({.pattern = "x", .include = "src/*.{cc,h}"}),
              ElementsAre("src/b.cc:1", "src/c.h:1"));
  EXPECT_THAT(found({.pattern = "x", .path = "src", .include = "deep/**"}),
              ElementsAre("src/deep/d.cc:1"));
}

TEST_F(GrepTest, context_lines_come_once) {
  make("f", "1\n2\nx\n4\n5\nx\n7\n8\n9\n10\nx\n");
  EXPECT_EQ(get({.pattern = "x", .context = 1}).text,
            "/workspace/f-2- 2\n/workspace/f:3: x\n/workspace/f-4- 4\n"
            "/workspace/f-5- 5\n/workspace/f:6: x\n/workspace/f-7- 7\n"
            "--\n/workspace/f-10- 10\n/workspace/f:11: x\n");
  EXPECT_EQ(get({.pattern = "x", .context = 2}).text,
            "/workspace/f-1- 1\n/workspace/f-2- 2\n/workspace/f:3: x\n/workspace/f-4- 4\n"
            "/workspace/f-5- 5\n/workspace/f:6: x\n/workspace/f-7- 7\n/workspace/f-8- 8\n"
            "/workspace/f-9- 9\n/workspace/f-10- 10\n/workspace/f:11: x\n");
  EXPECT_THAT(get({.pattern = "7", .context = 100}).matches[0].before.size(), 6U);
}

TEST_F(GrepTest, ignored_and_binary_files_are_passed_over) {
  make(".gitignore", "*.log\n");
  make("a.log", "x\n");
  make("binary", std::string("x\n\0", 3));
  make(".git/config", "x\n");
  make("text", "x\n");
  EXPECT_THAT(found({.pattern = "x"}), ElementsAre("text:1"));
  EXPECT_THAT(found({.pattern = "x", .path = "a.log"}), ElementsAre("a.log:1"));
  EXPECT_EQ(fails({.pattern = "x", .path = "binary"}), Kind::binary);
}

TEST_F(GrepTest, ends_at_100_matches_and_says_so) {
  for (int i = 0; i < 50; ++i) make("d/f" + std::to_string(i), "x\nx\nx\n");
  const GrepResult result = get({.pattern = "x"});
  EXPECT_EQ(result.matches.size(), kMaxMatches);
  EXPECT_TRUE(result.truncated);
  EXPECT_LT(result.files, 50U);
  EXPECT_NE(result.text.find("there may be more"), std::string::npos);
  make("e/f", "y\n");
  EXPECT_FALSE(get({.pattern = "y"}).truncated);
  std::string exactly;
  for (std::size_t i = 0; i < kMaxMatches; ++i) exactly += "z\n";
  make("e/z", exactly);
  EXPECT_FALSE(get({.pattern = "z"}).truncated);
}

TEST_F(GrepTest, large_files_are_searched_to_their_end) {
  std::string large;
  while (large.size() < 5'000'000) large += "some line of text\n";
  const auto lines = static_cast<std::uint64_t>(std::ranges::count(large, '\n'));
  make("large", "needle\n" + large + "before\nneedle\nafter\n" + large + "needle");
  const GrepResult result = get({.pattern = "needle", .context = 1});
  ASSERT_EQ(result.matches.size(), 3U);
  EXPECT_EQ(result.matches[0].line, 1U);
  EXPECT_EQ(result.matches[1].line, lines + 3);
  EXPECT_EQ(result.matches[2].line, 2 * lines + 5);
  EXPECT_THAT(result.matches[1].before, ElementsAre("before"));
  EXPECT_THAT(result.matches[1].after, ElementsAre("after"));
  EXPECT_THAT(result.matches[2].before, ElementsAre("some line of text"));
}

// Wherever the window's end falls among the lines.
TEST_F(GrepTest, no_match_is_lost_or_doubled_at_the_end_of_a_window) {
  const std::size_t window = std::size_t{1} << 20;
  for (std::size_t shift = 0; shift < 24; ++shift) {
    std::string text(window - 12 - shift, 'x');
    for (std::size_t i = 99; i < text.size(); i += 100) text[i] = '\n';
    text += "\nbefore\nneedle\nafter\n" + std::string(100, 'y') + "\n";
    make("f", text);
    const GrepResult result = get({.pattern = "needle", .context = 1});
    ASSERT_EQ(result.matches.size(), 1U) << shift;
    EXPECT_THAT(result.matches[0].before, ElementsAre("before")) << shift;
    EXPECT_THAT(result.matches[0].after, ElementsAre("after")) << shift;
    EXPECT_EQ(result.matches[0].line, static_cast<std::uint64_t>(std::ranges::count(
                                          text.substr(0, text.find("needle")), '\n')) +
                                          1);
  }
}

TEST_F(GrepTest, huge_lines_cost_no_memory_and_are_cut) {
  make("f", std::string(8'000'000, 'a') + "needle" + std::string(1'000'000, 'b') + "\nneedle\n");
  const GrepResult result = get({.pattern = "needle"});
  ASSERT_EQ(result.matches.size(), 2U);
  EXPECT_LT(result.text.size(), 5000U);
  EXPECT_EQ(result.matches[1].line, 2U);
}

TEST_F(GrepTest, what_is_no_utf8_is_found_and_repaired) {
  make("f", "caf\xe9 needle\n");
  EXPECT_EQ(get({.pattern = "needle"}).matches[0].text, "caf\xef\xbf\xbd needle");
}

TEST_F(GrepTest, nothing_outside_is_searched) {
  folders_.link("out", folders_.outside.path());
  folders_.link("secret", folders_.outside.path() + "/secret");
  ASSERT_EQ(::mkfifo((folders_ / "fifo").c_str(), 0600), 0);
  EXPECT_TRUE(found({.pattern = "secret"}).empty());
  EXPECT_EQ(fails({.pattern = "secret", .path = "out"}), Kind::outside);
  EXPECT_EQ(fails({.pattern = "secret", .path = "secret"}), Kind::outside);
  EXPECT_EQ(fails({.pattern = "secret", .path = "fifo"}), Kind::not_a_file);
}

TEST_F(GrepTest, rules_and_hidden_places_are_kept) {
  make("a.pem", "x\n");
  make("keys/key", "x\n");
  make("b", "x\n");
  const Workspace workspace =
      folders_.open({{.inside = "/workspace/keys", .outside = folders_ / "keys", .hidden = true}},
                    *PathRules::make({{PathRule::Says::deny, "*.pem"}}));
  fs::rename(folders_ / "keys", folders_ / "moved");
  EXPECT_EQ(grep(workspace, {.pattern = "x"})->text, "/workspace/b:1: x\n");
  EXPECT_EQ(grep(workspace, {.pattern = "x", .path = "moved"}).error().kind, Kind::denied_by_rule);
}

TEST_F(GrepTest, a_search_from_a_denied_folder_finds_what_is_allowed_in_it) {
  make("src/a", "x\n");
  make("b", "x\n");
  const Workspace workspace = folders_.open(
      {},
      *PathRules::make({{PathRule::Says::deny, "*"}, {PathRule::Says::allow, "/workspace/src"}}));
  EXPECT_EQ(grep(workspace, {.pattern = "x"})->text, "/workspace/src/a:1: x\n");
  EXPECT_EQ(grep(workspace, {.pattern = "x", .path = "b"}).error().kind, Kind::denied_by_rule);
}

// Both threads must see both: what is for others in one root, and what is only ours in the other.
TEST_F(GrepTest, as_root_each_root_is_searched_with_its_own_rights) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can read what is not its own";
  belljar::testing::Folder system;
  set_mode(system.path(), 0755);
  for (int i = 0; i < 600; ++i) {
    const std::string name = "f" + std::to_string(i);
    system.write(name, "x\n");
    set_mode(system.path() + "/" + name, i % 2 == 0 ? 0644 : 0600);
    make("d" + std::to_string(i % 10) + "/" + name, "x\n");
    set_mode(folders_ / ("d" + std::to_string(i % 10) + "/" + name), 0600);
  }
  const Workspace workspace =
      *Workspace::open({{.inside = "/s", .outside = system.path(), .rights = Rights::everybodys},
                        {.inside = "/s/w", .outside = folders_.inside.path()}},
                       "/s");
  for (int round = 0; round < 10; ++round) {
    const Result<GrepResult> result = grep(workspace, {.pattern = "x", .most = 10'000});
    ASSERT_EQ(result->matches.size(), 900U);
  }
}

TEST_F(GrepTest, stops_when_it_is_told) {
  make("f", std::string(3'000'000, 'a'));
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_TRUE(get({.pattern = "x", .stop = stopped.get_token()}).truncated);
  EXPECT_TRUE(get({.pattern = "x", .path = "f", .stop = stopped.get_token()}).truncated);
  EXPECT_TRUE(get({.pattern = "x", .limits = {.time = std::chrono::milliseconds(-1)}}).truncated);
}

TEST_F(GrepTest, calls_that_make_no_sense_are_refused) {
  EXPECT_EQ(fails({.pattern = ""}), Kind::bad_pattern);
  EXPECT_EQ(fails({.pattern = "("}), Kind::bad_pattern);
  EXPECT_EQ(fails({.pattern = "x", .include = "[a"}), Kind::bad_pattern);
  EXPECT_EQ(fails({.pattern = "x", .path = "missing"}), Kind::not_found);
  EXPECT_EQ(fails({.pattern = "x", .path = "/etc"}), Kind::outside);
}

}  // namespace
}  // namespace belljar::tools
