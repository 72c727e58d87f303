#include "server/mcp_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace belljar::server {
namespace {

using testing::HasSubstr;
using Send = McpConnection::Send;
using Begin = McpConnection::Begin;
using Stop = McpConnection::Stop;
using Heard = McpConnection::Heard;

McpFacts facts() {
  McpFacts facts;
  facts.version = "1";
  facts.capabilities = {{"tools", json::object()}};
  return facts;
}

template <class T>
T only(std::vector<McpConnection::Step> steps) {
  EXPECT_EQ(steps.size(), 1U);
  if (steps.size() != 1 || !std::holds_alternative<T>(steps[0])) {
    ADD_FAILURE() << "another step";
    return {};
  }
  return std::get<T>(std::move(steps[0]));
}

json::object answer(const Send& message) { return json::parse(message.text).as_object(); }

std::int64_t code_of(const Send& message) {
  return answer(message).at("error").at("code").as_int64();
}

McpConnection initialized(const std::string& capabilities = "{}") {
  McpConnection connection(facts());
  (void)connection.receive(
      R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":)" +
      capabilities + R"(,"clientInfo":{"name":"t","version":"1"}}})");
  return connection;
}

std::string stateless(const std::string& method, const std::string& more = "",
                      const std::string& version = "2026-07-28") {
  return R"({"jsonrpc":"2.0","id":7,"method":")" + method +
         R"(","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":")" + version +
         R"(","io.modelcontextprotocol/clientCapabilities":{})" + more + "}}}";
}

TEST(McpConnection, initialize_agrees_on_a_version_that_both_speak) {
  for (const auto& [asked, agreed] :
       {std::pair("2025-06-18", "2025-06-18"), std::pair("2025-11-25", "2025-11-25"),
        std::pair("2026-07-28", "2025-11-25"), std::pair("1999-01-01", "2025-11-25")}) {
    McpConnection connection(facts());
    const Send said = only<Send>(connection.receive(
        R"({"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":")" +
        std::string(asked) + R"(","capabilities":{}}})"));
    EXPECT_EQ(answer(said).at("result").at("protocolVersion").as_string(), agreed);
    EXPECT_TRUE(said.last);
  }
}

TEST(McpConnection, requests_before_initialize_are_refused_but_ping_is_not) {
  McpConnection connection(facts());
  EXPECT_EQ(
      code_of(only<Send>(connection.receive(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})"))),
      mcp_code::invalid_request);
  const Send pong = only<Send>(connection.receive(R"({"jsonrpc":"2.0","id":1,"method":"ping"})"));
  EXPECT_TRUE(answer(pong).at("result").as_object().empty());
}

TEST(McpConnection, what_cannot_be_read_is_answered_with_the_right_code) {
  for (const auto& [text, code] : std::vector<std::pair<std::string, int>>{
           {"", mcp_code::parse_error},
           {"{", mcp_code::parse_error},
           {std::string(1000, '['), mcp_code::parse_error},
           {"[]", mcp_code::invalid_request},
           {"1", mcp_code::invalid_request},
           {R"({"id":1,"method":"ping"})", mcp_code::invalid_request},
           {R"({"jsonrpc":"2.0"})", mcp_code::invalid_request},
           {R"({"jsonrpc":"2.0","id":null,"method":"ping"})", mcp_code::invalid_request},
           {R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})", mcp_code::invalid_request},
           {R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[]})", mcp_code::invalid_params}}) {
    McpConnection connection(facts());
    EXPECT_EQ(code_of(only<Send>(connection.receive(text))), code) << text.substr(0, 50);
  }
}

TEST(McpConnection, a_cancelled_request_is_stopped_and_not_answered) {
  McpConnection connection = initialized();
  const Begin begin = only<Begin>(
      connection.receive(R"({"jsonrpc":"2.0","id":5,"method":"tools/call","params":{}})"));
  const std::string cancel =
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}})";
  EXPECT_EQ(only<Stop>(connection.receive(cancel)).key, begin.key);
  EXPECT_FALSE(connection.finish(begin.key, json::object()));
  EXPECT_TRUE(connection.receive(cancel).empty());
}

TEST(McpConnection, a_question_about_what_was_cancelled_is_forgotten) {
  McpConnection connection = initialized();
  const std::string call = R"({"jsonrpc":"2.0","id":5,"method":"tools/call","params":{}})";
  for (const bool is_cancelled : {false, true}) {
    const Begin begin = only<Begin>(connection.receive(call));
    const std::string id = connection.ask(begin.key, "elicitation/create", {}).first;
    if (is_cancelled)
      (void)connection.receive(
          R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}})");
    const std::string reply = R"({"jsonrpc":"2.0","id":")" + id + R"(","result":{}})";
    EXPECT_EQ(connection.receive(reply).empty(), is_cancelled);
    (void)connection.finish(begin.key, json::object());
  }
}

TEST(McpConnection, what_a_client_says_of_itself_has_a_length) {
  for (const std::size_t size : {std::size_t{60} << 10, std::size_t{64} << 10}) {
    McpConnection connection(facts());
    const Send said = only<Send>(connection.receive(
        R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",)"
        R"("capabilities":{"x":")" +
        std::string(size, 'x') + R"("}}})"));
    const bool fits = size < std::size_t{64} << 10;
    EXPECT_EQ(said.error, fits ? 0 : mcp_code::invalid_params);
    // What was refused has begun nothing.
    EXPECT_EQ(connection.notify("n", {}).has_value(), fits);
  }
}

TEST(McpConnection, an_id_has_a_length) {
  McpConnection connection = initialized();
  const auto ping = [](std::size_t size) {
    return R"({"jsonrpc":"2.0","id":")" + std::string(size, 'x') + R"(","method":"ping"})";
  };
  EXPECT_EQ(only<Send>(connection.receive(ping(1024))).error, 0);
  EXPECT_EQ(code_of(only<Send>(connection.receive(ping(1025)))), mcp_code::invalid_request);
}

TEST(McpConnection, ids_of_text_and_number_are_not_confused) {
  McpConnection connection = initialized();
  const Begin number =
      only<Begin>(connection.receive(R"({"jsonrpc":"2.0","id":5,"method":"tools/list"})"));
  const Begin text =
      only<Begin>(connection.receive(R"({"jsonrpc":"2.0","id":"5","method":"tools/list"})"));
  EXPECT_NE(number.key, text.key);
  EXPECT_EQ(answer(*connection.finish(text.key, json::object())).at("id").as_string(), "5");
  EXPECT_EQ(
      code_of(only<Send>(connection.receive(R"({"jsonrpc":"2.0","id":5,"method":"tools/list"})"))),
      mcp_code::invalid_request);
}

TEST(McpConnection, progress_goes_to_who_asked_and_only_forward) {
  McpConnection connection = initialized();
  const Begin quiet =
      only<Begin>(connection.receive(R"({"jsonrpc":"2.0","id":1,"method":"tools/call"})"));
  EXPECT_FALSE(connection.progress(quiet.key, 1, {}, "x"));
  const Begin asked = only<Begin>(connection.receive(
      R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":"t"}}})"));
  EXPECT_THAT(connection.progress(asked.key, 1, 2, "x")->text, HasSubstr("progressToken"));
  EXPECT_FALSE(connection.progress(asked.key, 1, 2, "x"));
  EXPECT_EQ(connection.progress(asked.key, 2, 2, "x")->about, asked.key);
  (void)connection.finish(asked.key, json::object());
  EXPECT_FALSE(connection.progress(asked.key, 3, {}, "x"));
}

TEST(McpConnection, logs_have_a_level_that_the_client_sets) {
  McpConnection connection = initialized();
  const Begin begin =
      only<Begin>(connection.receive(R"({"jsonrpc":"2.0","id":1,"method":"tools/call"})"));
  EXPECT_FALSE(connection.log(begin.key, LogLevel::debug, "x"));
  EXPECT_TRUE(connection.log(begin.key, LogLevel::info, "x"));
  (void)connection.receive(
      R"({"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"error"}})");
  const Begin later =
      only<Begin>(connection.receive(R"({"jsonrpc":"2.0","id":3,"method":"tools/call"})"));
  EXPECT_FALSE(connection.log(later.key, LogLevel::warning, "x"));
  EXPECT_EQ(
      code_of(only<Send>(connection.receive(
          R"({"jsonrpc":"2.0","id":4,"method":"logging/setLevel","params":{"level":"loud"}})"))),
      mcp_code::invalid_params);
}

TEST(McpConnection, an_answer_is_heard_once_and_only_to_what_was_asked) {
  McpConnection connection = initialized();
  auto [id, question] = connection.ask("1", "elicitation/create", {});
  EXPECT_EQ(question.about, "1");
  const std::string reply =
      R"({"jsonrpc":"2.0","id":")" + id + R"(","result":{"action":"accept"}})";
  const Heard heard = only<Heard>(connection.receive(reply));
  EXPECT_EQ(heard.question, id);
  EXPECT_TRUE(heard.result.has_value());
  EXPECT_TRUE(connection.receive(reply).empty());
  EXPECT_TRUE(connection.receive(R"({"jsonrpc":"2.0","id":"made-up","result":{}})").empty());
}

TEST(McpConnection, the_stateless_era_needs_no_initialize_but_its_meta) {
  McpConnection connection(facts());
  const Begin begin = only<Begin>(connection.receive(stateless("tools/list")));
  EXPECT_TRUE(begin.context.stateless);
  EXPECT_FALSE(begin.context.log_level);
  EXPECT_EQ(code_of(only<Send>(connection.receive(
                R"({"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}})"))),
            mcp_code::invalid_params);
  const Send other = only<Send>(connection.receive(stateless("tools/list", "", "2031-01-01")));
  EXPECT_EQ(code_of(other), mcp_code::unsupported_version);
  EXPECT_EQ(answer(other).at("error").at("data").at("requested").as_string(), "2031-01-01");
}

TEST(McpConnection, the_stateless_era_has_no_initialize_and_no_ping) {
  McpConnection connection(facts());
  for (const char* method : {"initialize", "ping", "logging/setLevel"}) {
    const Begin begin = only<Begin>(connection.receive(stateless(method)));
    EXPECT_EQ(begin.request.method, method);  // and who works on it finds no such method
    (void)connection.finish(begin.key, json::object());
  }
}

TEST(McpConnection, both_eras_live_on_one_connection) {
  McpConnection connection = initialized();
  EXPECT_TRUE(only<Begin>(connection.receive(stateless("tools/list"))).context.stateless);
  EXPECT_FALSE(only<Begin>(connection.receive(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})"))
                   .context.stateless);
}

TEST(McpConnection, a_client_that_only_asks_is_bounded) {
  McpConnection connection = initialized();
  int begun = 0;
  for (int i = 0; i < 2000; ++i)
    begun += std::holds_alternative<Begin>(connection.receive(
        R"({"jsonrpc":"2.0","id":)" + std::to_string(i) + R"(,"method":"tools/list"})")[0]);
  EXPECT_EQ(begun, 1000);
}

}  // namespace
}  // namespace belljar::server
