#include "server/approvals.h"

#include <gtest/gtest.h>

namespace belljar::server {
namespace {

using std::chrono::milliseconds;

Approval about(std::string tool, std::vector<std::string> commands, std::string session = "s") {
  Approval approval;
  approval.tool = std::move(tool);
  approval.session = std::move(session);
  approval.subjects = std::move(commands);
  return approval;
}

// Asks, and lets `decides` hear of it.
std::optional<Decision> ask(Approvals& approvals, Loop& loop, Approval approval,
                            std::function<void(const Approval&)> decides,
                            std::shared_ptr<Cancel> cancel = {}) {
  std::optional<Decision> result;
  auto wait = [](Approvals& of, Approval what, std::function<void(const Approval&)> hears,
                 std::shared_ptr<Cancel> until, std::optional<Decision>& to) -> Async<void> {
    to = co_await of.ask(std::move(what), std::move(hears), std::move(until));
  };
  begin(loop, wait(approvals, std::move(approval), std::move(decides), std::move(cancel), result));
  loop.restart();
  loop.run();
  return result;
}

TEST(Approvals, one_that_nobody_decides_about_is_denied) {
  Loop loop;
  Approvals approvals(loop, milliseconds(20));
  const std::optional<Decision> decision = ask(approvals, loop, about("shell", {"ls"}), {});
  ASSERT_TRUE(decision);
  EXPECT_FALSE(decision->approved);
  EXPECT_EQ(decision->by, "timeout");
  EXPECT_TRUE(approvals.pending().empty());
}

TEST(Approvals, when_nobody_will_decide_any_more_all_are_denied) {
  Loop loop;
  Approvals approvals(loop, std::chrono::hours(1));
  std::size_t decided = 0;
  approvals.subscribe([&](const ApprovalEvent& event) {
    if (event.kind == ApprovalEvent::Kind::decided) ++decided;
  });
  const auto waited = ask(approvals, loop, about("shell", {"ls"}),
                          [&](const Approval&) { approvals.close("it stops"); });
  ASSERT_TRUE(waited);
  EXPECT_FALSE(waited->approved);
  EXPECT_EQ(waited->by, "shutdown");
  EXPECT_EQ(waited->message, "it stops");
  EXPECT_EQ(decided, 1U);
  const auto later = ask(approvals, loop, about("shell", {"ls"}), {});
  ASSERT_TRUE(later);
  EXPECT_EQ(later->by, "shutdown") << "it does not wait";
}

TEST(Approvals, a_decision_is_heard_once) {
  Loop loop;
  Approvals approvals(loop, milliseconds(10'000));
  std::vector<ApprovalEvent::Kind> heard;
  approvals.subscribe([&](const ApprovalEvent& event) { heard.push_back(event.kind); });
  const auto decision = ask(approvals, loop, about("shell", {"ls"}), [&](const Approval& asked) {
    EXPECT_EQ(approvals.pending().size(), 1U);
    EXPECT_TRUE(approvals.find(asked.id));
    EXPECT_TRUE(approvals.decide(asked.id, {.approved = true, .message = "yes"}));
    EXPECT_FALSE(approvals.decide(asked.id, {.approved = false}));
  });
  ASSERT_TRUE(decision);
  EXPECT_TRUE(decision->approved);
  EXPECT_EQ(decision->message, "yes");
  EXPECT_EQ(heard.size(), 2U);
  EXPECT_FALSE(approvals.remembered(about("shell", {"ls"}))) << "once is once";
}

TEST(Approvals, a_cancelled_call_waits_no_longer) {
  Loop loop;
  Approvals approvals(loop, milliseconds(60'000));
  const auto cancel = std::make_shared<Cancel>();
  EXPECT_FALSE(ask(approvals, loop, about("python", {}), [&](auto&) { cancel->ask(); }, cancel));
  EXPECT_TRUE(approvals.pending().empty());
}

TEST(Approvals, for_the_session_means_this_tool_and_this_session) {
  Loop loop;
  Approvals approvals(loop, milliseconds(10'000));
  (void)ask(approvals, loop, about("shell", {"ls"}), [&](const Approval& asked) {
    EXPECT_TRUE(approvals.decide(asked.id, {.approved = true, .scope = Scope::tool}));
  });
  EXPECT_TRUE(approvals.remembered(about("shell", {"anything; at all"})));
  EXPECT_FALSE(approvals.remembered(about("python", {})));
  EXPECT_FALSE(approvals.remembered(about("shell", {"ls"}, "other")));
  approvals.forget("s");
  EXPECT_FALSE(approvals.remembered(about("shell", {"ls"})));
}

TEST(Approvals, a_pattern_covers_commands_that_match_and_are_one) {
  Loop loop;
  Approvals approvals(loop, milliseconds(10'000));
  (void)ask(approvals, loop, about("shell", {"git log"}), [&](const Approval& asked) {
    auto with = [&](std::string pattern) {
      return approvals.decide(
          asked.id, {.approved = true, .scope = Scope::pattern, .pattern = std::move(pattern)});
    };
    EXPECT_FALSE(with("make *")) << "it does not match what it shall approve";
    EXPECT_TRUE(with("git *"));
  });
  EXPECT_TRUE(approvals.remembered(about("shell", {"git status", "git diff"})));
  EXPECT_FALSE(approvals.remembered(about("shell", {"git status", "rm x"})));
  EXPECT_FALSE(approvals.remembered(about("shell", {"git status; rm x"})));
  EXPECT_FALSE(approvals.remembered(about("shell", {})));
}

TEST(Approvals, the_same_commands_are_those_and_no_pattern) {
  Loop loop;
  Approvals approvals(loop, milliseconds(10'000));
  (void)ask(approvals, loop, about("shell", {"rm *.o"}), [&](const Approval& asked) {
    EXPECT_TRUE(approvals.decide(asked.id, {.approved = true, .scope = Scope::same}));
  });
  EXPECT_TRUE(approvals.remembered(about("shell", {"rm *.o"})));
  EXPECT_FALSE(approvals.remembered(about("shell", {"rm main.c x.o"})));
  EXPECT_FALSE(approvals.remembered(about("shell", {"rm *.o", "rm *.o"})));
  EXPECT_FALSE(approvals.remembered(about("shell", {"rm *.o"}, "other")));
}

// Joined, the words of two programs can be one text.
TEST(Approvals, the_same_program_is_that_with_those_words_and_variables) {
  Loop loop;
  Approvals approvals(loop, milliseconds(10'000));
  auto program = [](std::string exact) {
    Approval approval = about("process_start", {"rm my dir"});
    approval.exact = std::move(exact);
    return approval;
  };
  approvals.remember(program(R"([["rm","my dir"]])"), {.approved = true, .scope = Scope::same});
  EXPECT_TRUE(approvals.remembered(program(R"([["rm","my dir"]])")));
  EXPECT_FALSE(approvals.remembered(program(R"([["rm","my","dir"]])")));
  EXPECT_FALSE(approvals.remembered(about("shell", {"rm my dir"})));
}

TEST(Approvals, a_pattern_says_nothing_of_a_folder_or_variables) {
  Loop loop;
  Approvals approvals(loop, milliseconds(10'000));
  Approval altered = about("process_start", {"git log"});
  altered.altered = true;
  auto approve = [&](std::string pattern) {
    approvals.remember(about("process_start", {"git log"}),
                       {.approved = true, .scope = Scope::pattern, .pattern = std::move(pattern)});
  };
  approve("git *");
  EXPECT_TRUE(approvals.remembered(about("process_start", {"git log"})));
  EXPECT_FALSE(approvals.remembered(altered));
  approve("*");
  EXPECT_TRUE(approvals.remembered(altered)) << "that is every call of the tool";
}

TEST(Approvals, what_is_decided_and_remembered_has_a_length) {
  Loop loop;
  Approvals approvals(loop, milliseconds(10'000));
  const std::string command(kMaxPattern, 'a');
  auto decide = [&](std::string subject, const Decision& decision) {
    Status done;
    (void)ask(approvals, loop, about("shell", {std::move(subject)}), [&](const Approval& asked) {
      done = approvals.decide(asked.id, decision);
      if (!done) {
        EXPECT_TRUE(approvals.decide(asked.id, {.approved = false}));
      }
    });
    return done.has_value();
  };
  auto pattern = [](std::string text) {
    return Decision{.approved = true, .scope = Scope::pattern, .pattern = std::move(text)};
  };
  EXPECT_TRUE(decide(command, pattern(command)));
  EXPECT_FALSE(decide(command, pattern(command + "*")));
  EXPECT_FALSE(decide(command + "a", pattern("a*"))) << "the command is too long for patterns";
  EXPECT_FALSE(approvals.remembered(about("shell", {"b"})));
  EXPECT_TRUE(decide("b", {.approved = true, .message = std::string(kMaxDecisionMessage, 'm')}));
  EXPECT_FALSE(
      decide("b", {.approved = true, .message = std::string(kMaxDecisionMessage + 1, 'm')}));
  for (std::size_t i = 1; i < kMaxApproved; ++i)
    EXPECT_TRUE(decide("c" + std::to_string(i), {.approved = true, .scope = Scope::same}));
  EXPECT_FALSE(decide("d", {.approved = true, .scope = Scope::same}));
  EXPECT_FALSE(decide("d", pattern("d*")));
  EXPECT_FALSE(approvals.remembered(about("shell", {"d"})));
  EXPECT_TRUE(decide("d", {.approved = true})) << "once is always possible";
  EXPECT_TRUE(decide("d", {.approved = true, .scope = Scope::tool})) << "and so is the tool";
  EXPECT_TRUE(approvals.remembered(about("shell", {"d"})));
}

TEST(Approvals, long_patterns_are_few) {
  Loop loop;
  Approvals approvals(loop, milliseconds(10'000));
  auto covers = [&](char letter) {
    const std::string command(kMaxPattern, letter);
    approvals.remember(about("shell", {command}),
                       {.approved = true, .scope = Scope::pattern, .pattern = command});
    return approvals.remembered(about("shell", {command}));
  };
  for (std::size_t i = 0; i < kMaxApprovedBytes / kMaxPattern; ++i)
    EXPECT_TRUE(covers(static_cast<char>('a' + i)));
  EXPECT_FALSE(covers('z'));
}

TEST(Approvals, what_was_said_before_the_call_counts_for_the_session_too) {
  Loop loop;
  Approvals approvals(loop, milliseconds(10'000));
  approvals.remember(about("python", {}), {.approved = false, .scope = Scope::tool});
  EXPECT_FALSE(approvals.remembered(about("python", {})));
  approvals.remember(about("python", {}), {.approved = true, .scope = Scope::once});
  EXPECT_FALSE(approvals.remembered(about("python", {})));
  approvals.remember(about("python", {}), {.approved = true, .scope = Scope::tool});
  EXPECT_TRUE(approvals.remembered(about("python", {})));
}

TEST(Approvals, a_denial_is_not_remembered) {
  Loop loop;
  Approvals approvals(loop, milliseconds(10'000));
  const auto decision = ask(approvals, loop, about("shell", {"ls"}), [&](const Approval& asked) {
    EXPECT_TRUE(approvals.decide(asked.id, {.approved = false, .scope = Scope::tool}));
  });
  EXPECT_FALSE(decision->approved);
  EXPECT_FALSE(approvals.remembered(about("shell", {"ls"})));
}

}  // namespace
}  // namespace belljar::server
