// One end of an MCP connection, without any I/O: messages in, steps out. It knows the two
// eras of the protocol, who may still be answered and what was asked of the client; what
// the methods do is not its affair.
//
//   stateful    2025-06-18, 2025-11-25: initialize first, then requests
//   stateless   2026-07-28: every request says in _meta which version and what the client
//               can do; both may come over the same connection
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "server/mcp_message.h"

namespace belljar::server {

inline constexpr std::string_view kStatelessVersion = "2026-07-28";
inline constexpr std::string_view kLatestStateful = "2025-11-25";
inline constexpr std::string_view kMcpVersions[] = {"2026-07-28", "2025-11-25", "2025-06-18"};

inline constexpr std::string_view kVersionKey = "io.modelcontextprotocol/protocolVersion";
inline constexpr std::string_view kCapabilitiesKey = "io.modelcontextprotocol/clientCapabilities";
inline constexpr std::string_view kLogLevelKey = "io.modelcontextprotocol/logLevel";
inline constexpr std::string_view kServerInfoKey = "io.modelcontextprotocol/serverInfo";
inline constexpr std::string_view kSubscriptionKey = "io.modelcontextprotocol/subscriptionId";

// From the least severe.
enum class LogLevel { debug, info, notice, warning, error, critical, alert, emergency };
std::string_view name(LogLevel level);
std::optional<LogLevel> log_level(std::string_view name);

// Who we say that we are.
struct McpFacts {
  std::string name = "belljar";
  std::string title = "belljar";
  std::string version;
  std::string instructions;
  json::object capabilities;  // without what only the stateful era has

  json::object info() const { return {{"name", name}, {"title", title}, {"version", version}}; }
};

// What a request comes with, besides its own parameters.
struct McpContext {
  bool stateless = false;
  std::string version;
  json::object client;  // its capabilities
  std::optional<LogLevel> log_level;
  json::value progress_token;  // null: it wants no progress

  bool client_has(std::string_view capability) const { return client.contains(capability); }
};

class McpConnection {
 public:
  explicit McpConnection(McpFacts facts) : facts_(std::move(facts)) {}

  struct Send {
    std::string text;   // empty: the request was cancelled, and no answer will come
    std::string about;  // the request that it belongs to; empty: none
    bool last = false;  // it is that request's answer
    int error = 0;      // the code, where the answer is an error
  };
  struct Begin {  // somebody shall work on it, and call finish()
    std::string key;
    McpRequest request;
    McpContext context;
  };
  struct Stop {  // nobody waits for it any more
    std::string key;
  };
  struct Heard {  // what the client answers to a question of ours
    std::string question;
    McpResult result;
  };
  using Step = std::variant<Send, Begin, Stop, Heard>;

  std::vector<Step> receive(std::string_view text);
  std::vector<Step> receive(McpMessage message);

  // nullopt: it was cancelled, and an answer would be one too many.
  std::optional<Send> finish(const std::string& key, McpResult result);
  // The same with its text, which is response_text() of its id_of().
  std::optional<Send> finish_with(const std::string& key, std::string text, int code);
  // As the client gave it; null: it is not under way.
  json::value id_of(const std::string& key) const;
  // nullopt: the client has not asked for it.
  std::optional<Send> progress(const std::string& key, double done, std::optional<double> total,
                               const std::string& message);
  std::optional<Send> log(const std::string& key, LogLevel level, json::value data);
  // A question to the client, and under which name its answer will be Heard.
  std::pair<std::string, Send> ask(const std::string& about, std::string_view method,
                                   json::object params);
  // What belongs to no request; nullopt: nobody has introduced himself yet.
  std::optional<Send> notify(std::string_view method, json::object params) const;

  // Every request is one of the stateless era, whatever it says of itself.
  void require_stateless() { only_stateless_ = true; }
  bool requires_stateless() const { return only_stateless_; }
  const McpFacts& facts() const { return facts_; }

 private:
  struct Open {
    json::value id;
    McpContext context;
    double progress = -1;  // it must grow
  };
  std::vector<Step> take(McpRequest request);
  std::vector<Step> take(const McpNotice& notice);
  std::vector<Step> take(McpResponse response);
  McpResult initialize(const json::object& params);
  McpResult set_level(const json::object& params);
  void forget_questions(const std::string& about);
  std::expected<McpContext, McpError> context_of(const McpRequest& request) const;

  McpFacts facts_;
  bool only_stateless_ = false;
  std::optional<std::string> version_;  // that was agreed on by initialize
  json::object client_;
  std::optional<LogLevel> level_;
  std::map<std::string, Open> open_;
  std::map<std::string, std::string> questions_;  // and the request that each is about
  std::uint64_t asked_ = 0;
};

// Whether a request is one of the stateless era, by what it says of itself.
bool is_stateless(const McpRequest& request);
// The name under which a request is known while it is worked on.
std::string key_of(const json::value& id);

}  // namespace belljar::server
