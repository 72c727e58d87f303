#include "server/tokens.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <latch>
#include <map>
#include <optional>
#include <thread>

#include "base/file.h"

namespace belljar::server {
namespace {

TEST(Tokens, a_file_of_names_and_scopes) {
  const Result<Tokens> tokens = Tokens::parse(
      "# comment\n\nann run,approve 0123456789abcdef\nbob read fedcba9876543210\n", "f");
  ASSERT_TRUE(tokens.has_value());
  const Principal* ann = tokens->find("0123456789abcdef");
  ASSERT_NE(ann, nullptr);
  EXPECT_EQ(ann->name, "ann");
  EXPECT_TRUE(ann->may(Right::run) && ann->may(Right::read) && ann->may(Right::approve));
  EXPECT_FALSE(ann->may(Right::admin));
  EXPECT_FALSE(tokens->find("fedcba9876543210")->may(Right::run));
  for (std::string_view wrong : {"", "0123456789abcde", "0123456789abcdef ", "ann"})
    EXPECT_EQ(tokens->find(wrong), nullptr) << wrong;
}

TEST(Tokens, a_lone_token_may_do_everything) {
  const Result<Tokens> tokens = Tokens::parse("0123456789abcdef\n", "f");
  ASSERT_TRUE(tokens.has_value());
  EXPECT_TRUE(tokens->find("0123456789abcdef")->may(Right::admin));
}

TEST(Tokens, what_is_none_is_refused_with_its_line) {
  for (std::string_view text :
       {"", "short", "a run short", "a fly 0123456789abcdef", "a run 0123456789abcdef x",
        "uid:0 run 0123456789abcdef", "a run 0123456789abcdef\na run 1123456789abcdef"}) {
    const Result<Tokens> tokens = Tokens::parse(text, "file");
    ASSERT_FALSE(tokens.has_value()) << text;
    EXPECT_NE(tokens.error().what.find("file"), std::string::npos);
  }
}

TEST(Tokens, a_dispatch_token_is_for_one_session_and_replaced) {
  Result<Tokens> tokens = Tokens::parse("0123456789abcdef\n", "f");
  ASSERT_TRUE(tokens.has_value());
  const std::string first = *tokens->add_dispatch("ann", "s");
  const std::string second = *tokens->add_dispatch("ann", "s");
  EXPECT_EQ(tokens->find(first), nullptr);
  ASSERT_NE(tokens->find(second), nullptr);
  EXPECT_EQ(tokens->find(second)->session, "s");
  EXPECT_FALSE(tokens->find(second)->may(Right::read));
  tokens->remove_dispatch("s");
  EXPECT_EQ(tokens->find(second), nullptr);
}

TEST(Tokens, who_has_lost_something_is_known) {
  const std::string before =
      "same run 0123456789abcdef\ngone run 1123456789abcdef\nother run 2123456789abcdef\n"
      "less run,approve 3123456789abcdef\nmore read 4123456789abcdef\n";
  const std::string after =
      "same run 0123456789abcdef\nother run 2123456789abcdee\nless run 3123456789abcdef\n"
      "more run 4123456789abcdef\nnew run 5123456789abcdef\n";
  Result<Tokens> tokens = Tokens::parse(before, "f");
  ASSERT_TRUE(tokens.has_value());
  std::map<std::string, std::string> addresses;
  for (const char* owner : {"same", "gone", "other", "less", "uid:1"})
    addresses[owner] = *tokens->add_dispatch(owner, std::string("of ") + owner);
  EXPECT_EQ(tokens->replace(*Tokens::parse(after, "f")),
            (std::set<std::string>{"gone", "other", "less"}));
  for (const auto& [owner, address] : addresses)
    EXPECT_EQ(tokens->find(address) != nullptr, owner == "same" || owner == "uid:1") << owner;
}

std::set<std::string> names_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename());
  return names;
}

// Each finds either nothing or all of it, and what one has made the others have read.
TEST(Tokens, servers_that_start_at_once_have_the_same_file) {
  std::string folder = testing::TempDir() + "tokens.XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/tokens";
  for (int round = 0; round < 200; ++round) {
    constexpr int kServers = 4;
    std::array<std::optional<Result<Tokens>>, kServers> tokens;
    std::latch start(kServers);
    {
      std::vector<std::jthread> servers;
      for (auto& mine : tokens)
        servers.emplace_back([&] {
          start.arrive_and_wait();
          mine = Tokens::read_or_make(path);
        });
    }
    const std::string line = *read_text(path);
    const std::string token = line.substr(line.rfind(' ') + 1, line.size() - line.rfind(' ') - 2);
    for (const auto& mine : tokens) {
      ASSERT_TRUE(*mine) << mine->error().message();
      ASSERT_NE((*mine)->find(token), nullptr) << round;
    }
    ASSERT_EQ(names_in(folder), std::set<std::string>{"tokens"});
    ASSERT_EQ(::unlink(path.c_str()), 0);
  }
  ASSERT_EQ(::rmdir(folder.c_str()), 0);
}

TEST(Tokens, made_ones_differ) { EXPECT_NE(make_token(), make_token()); }

}  // namespace
}  // namespace belljar::server
