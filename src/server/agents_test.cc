#include "server/agents.h"

#include <gtest/gtest.h>

#include "support/folder.h"

namespace belljar::server {
namespace {

using enum Permission;
using belljar::testing::Folder;

Permission decide(const Agent& agent, std::string_view tool, std::string text = {}) {
  return agent.permissions.decide(tool, {.text = std::move(text)});
}

constexpr const char* kRows =
    "read: allow\nwrite: allow\nedit: allow\nglob: allow\ngrep: allow\nbash: allow\n"
    "webfetch: deny\ntask: deny\n";

// As its documentation prints it, with the list indented and with the indentation lost.
std::string coder(const std::string& indent) {
  std::string rows;
  for (std::string_view rest = kRows; !rest.empty();) {
    const std::size_t end = rest.find('\n') + 1;
    rows += indent + std::string(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  return "---\nname: coder\nmode: all\ndescription: A coding agent that can read, search, edit, "
         "and run commands.\npermission:\n" +
         rows + "---\nYou are a coding assistant.\n";
}

TEST(Agents, another_programs_file_loads_unchanged) {
  for (const char* indent : {"  ", ""}) {
    const Result<Agent> agent = parse_agent(coder(indent), "file");
    ASSERT_TRUE(agent) << agent.error().message();
    EXPECT_EQ(agent->name, "coder");
    EXPECT_EQ(decide(*agent, "shell", "make"), automatic);
    EXPECT_EQ(decide(*agent, "python"), deny);
    ASSERT_GE(agent->notes.size(), 2U);
    EXPECT_EQ(decide(*agent, "webfetch"), deny);
  }
}

TEST(Agents, patterns_keep_their_order) {
  const Result<Agent> agent = parse_agent(
      "---\npermission:\n  shell:\n    \"*\": ask\n    \"git *\": allow\n    \"git push*\": deny\n"
      "---\n",
      "a");
  ASSERT_TRUE(agent) << agent.error().message();
  EXPECT_EQ(agent->name, "a");
  EXPECT_EQ(decide(*agent, "shell", "git log"), automatic);
  EXPECT_EQ(decide(*agent, "shell", "git push"), deny);
  EXPECT_EQ(decide(*agent, "shell", "ls"), ask);
}

TEST(Agents, a_file_that_says_nothing_grants_nothing) {
  const Result<Agent> agent = parse_agent("---\nname: x\n---\n", "a");
  ASSERT_TRUE(agent);
  EXPECT_EQ(decide(*agent, "python"), deny);
}

TEST(Agents, a_key_that_was_to_be_another_is_refused) {
  const Result<Agent> typo = parse_agent("---\nname: x\npermissions:\n  shell: allow\n---\n", "a");
  ASSERT_FALSE(typo);
  EXPECT_EQ(typo.error().what, "unknown key permissions");
  EXPECT_EQ(typo.error().hint, "did you mean permission?");
  EXPECT_FALSE(parse_agent("---\nrights:\n  shell: allow\n---\n", "a")) << "it would say nothing";
  const Result<Agent> others =
      parse_agent("---\nrights: 1\npermission:\n  shell: allow\n---\n", "a");
  ASSERT_TRUE(others) << "other programs have keys of their own";
}

TEST(Agents, a_folder_is_read_though_some_files_are_broken) {
  const Folder folder;
  folder.write("good.md", "---\npermission:\n  shell: allow\n---\n");
  folder.write("bad.md", "nothing");
  folder.write("worse.md", "---\nname: good\npermission:\n  shell: deny\n---\n");
  folder.write("other.txt", "nothing");
  const Result<AgentFolder> found = load_agents(folder.path());
  ASSERT_TRUE(found) << found.error().message();
  ASSERT_EQ(found->agents.size(), 1U);
  EXPECT_EQ(decide(found->agents.at("good"), "shell", "ls"), automatic) << "the first by its name";
  ASSERT_EQ(found->broken.size(), 2U);
  EXPECT_TRUE(found->broken[0].starts_with(folder.path() + "/bad.md: ")) << found->broken[0];
  EXPECT_TRUE(load_agents(folder.path() + "/none")->agents.empty());
}

TEST(Agents, broken_files_are_refused) {
  for (const std::string& text : std::vector<std::string>{
           "", "name: x\n", "---\nname: x\n", "---\npermission: allow\n---\n",
           "---\npermission:\n  shell: maybe\n---\n", "---\npermission:\n  shell: [allow]\n---\n",
           "---\n[1, 2]\n---\n", "---\n{: : }\n  - : \n\t---\n",
           "---\nx: " + std::string(5000, '[') + "\n---\n",
           "---\nx: " + std::string(70'000, 'a') + "\n---\n"})
    EXPECT_FALSE(parse_agent(text, "a")) << text.substr(0, 60);
}

}  // namespace
}  // namespace belljar::server
