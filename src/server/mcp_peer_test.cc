#include <gtest/gtest.h>

#include "server/mcp_service.h"

namespace belljar::server {
namespace {

// A tool that asks the client something and does not wait for what it says.
class Asking : public McpProvider {
 public:
  explicit Asking(Loop& loop) : loop_(loop) {}
  void add_tools(json::array&) override {}
  Async<std::optional<McpResult>> call_tool(McpExchange& exchange, std::string name,
                                            json::object) override {
    if (name != "asks") co_return std::nullopt;
    auto ask = [](std::shared_ptr<McpExchange> about, std::optional<bool>& answer) -> Async<void> {
      json::object nothing;
      const McpResult said = co_await about->ask("elicitation/create", std::move(nothing));
      answer = said.has_value();
    };
    begin(loop_, ask(std::make_shared<McpExchange>(exchange), answered));
    // Time for an answer; then it ends without one.
    Signal never(loop_);
    (void)co_await never.wait_until(Clock::now() + std::chrono::milliseconds(100));
    json::object result;
    result["done"] = true;
    co_return McpResult(std::move(result));
  }
  void add_resources(const McpExchange&, json::array&) override {}
  void add_templates(json::array&) override {}
  Async<std::optional<McpResult>> read(McpExchange&, std::string) override {
    co_return std::nullopt;
  }
  void add_prompts(json::array&) override {}
  Async<std::optional<McpResult>> prompt(McpExchange&, std::string, json::object) override {
    co_return std::nullopt;
  }
  Async<std::vector<std::string>> complete(McpExchange&, std::string, std::string,
                                           std::string) override {
    co_return std::vector<std::string>();
  }

  std::optional<bool> answered;  // whether the question was; nullopt: it still waits

 private:
  Loop& loop_;
};

constexpr const char* kInitialize =
    R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",)"
    R"("capabilities":{}}})";
constexpr const char* kCall =
    R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"asks"}})";

struct Meeting {
  Loop loop;
  McpService service{loop, McpFacts()};
  std::shared_ptr<Asking> tool = std::make_shared<Asking>(loop);
  std::vector<std::string> said;
  std::shared_ptr<McpPeer> peer =
      McpPeer::make(service, "ann", [this](const McpConnection::Send& message) {
        said.push_back(message.text);
        if (on_message) on_message(message.text);
      });
  std::function<void(const std::string&)> on_message;

  void call() {
    service.add(tool);
    peer->receive(kInitialize);
    peer->receive(kCall);
    loop.run_for(std::chrono::seconds(10));  // or until nobody waits for anything
  }
};

TEST(McpPeer, a_question_that_nobody_answers_ends_with_its_call) {
  Meeting meeting;
  meeting.call();
  ASSERT_EQ(meeting.said.size(), 3U);  // of initialize, the question, the answer
  EXPECT_NE(meeting.said[2].find("\"done\":true"), std::string::npos);
  ASSERT_TRUE(meeting.tool->answered.has_value());
  EXPECT_FALSE(*meeting.tool->answered);
  // And so does what it held.
  const std::weak_ptr<McpPeer> left = meeting.peer;
  meeting.peer.reset();
  EXPECT_TRUE(left.expired());
}

TEST(McpPeer, a_question_is_answered_while_its_call_runs) {
  Meeting meeting;
  meeting.on_message = [&](const std::string& text) {
    if (text.find("elicitation/create") == text.npos) return;
    const json::value id = json::parse(text).at("id");
    asio::post(meeting.loop, [&meeting, id] {
      meeting.peer->receive(R"({"jsonrpc":"2.0","id":)" + json::serialize(id) + R"(,"result":{}})");
    });
  };
  meeting.call();
  ASSERT_TRUE(meeting.tool->answered.has_value());
  EXPECT_TRUE(*meeting.tool->answered);
}

}  // namespace
}  // namespace belljar::server
