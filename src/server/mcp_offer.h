// What belljar offers over MCP: the tools, by the dispatcher; the files and the log of each
// session as resources; prompts; completion of their arguments.
#pragma once

#include <deque>

#include "server/dispatch.h"
#include "server/mcp_service.h"
#include "server/owned_names.h"
#include "tools/tool_table.h"

namespace belljar::server {

struct OfferSettings {
  std::string agent;        // whose permissions count for every call; empty: nobody's
  std::string where_to_go;  // what a person runs to approve a call
  // Whether who asks for a call may also say yes to it; nothing: everybody may.
  std::function<bool(const std::string& principal)> may_approve = {};
  // What a session is like, where that is known; else it is found out when it is asked for.
  std::optional<tools::Facts> facts = {};
};

class McpOffer : public McpProvider {
 public:
  McpOffer(McpService& service, Dispatcher& dispatcher, OfferSettings settings);
  McpOffer(const McpOffer&) = delete;
  McpOffer& operator=(const McpOffer&) = delete;
  ~McpOffer() override = default;

  void add_tools(json::array& into) override;
  Async<std::optional<McpResult>> call_tool(McpExchange& exchange, std::string name,
                                            json::object arguments) override;
  void add_resources(const McpExchange& exchange, json::array& into) override;
  void add_templates(json::array& into) override;
  Async<std::optional<McpResult>> read(McpExchange& exchange, std::string uri) override;
  void add_prompts(json::array& into) override;
  Async<std::optional<McpResult>> prompt(McpExchange& exchange, std::string name,
                                         json::object arguments) override;
  Async<std::vector<std::string>> complete(McpExchange& exchange, std::string ref,
                                           std::string argument, std::string begun) override;
  void forget(McpPeer& peer) override;

 private:
  // What is told of a session besides its own files. The session keeps it, so that it ends with it.
  struct Told {
    std::map<std::string, FileLink> files;  // that calls have named
    std::deque<std::string> log;
    std::size_t log_bytes = 0;
  };
  const tools::Facts& facts();
  json::object tool_json(const tools::Tool& tool);
  static void ask_client(const std::shared_ptr<McpExchange>& exchange, Dispatcher& dispatcher,
                         const Approval& approval);
  std::expected<std::optional<Decision>, McpResult> answered(const McpExchange& exchange,
                                                             const ToolCall& call);
  McpResult input_required(const McpExchange& exchange, const ToolCall& call);
  std::string state_for(const ToolCall& call, std::int64_t until, const std::string& nonce) const;
  // Whose permissions count too. A client can only narrow: it cannot leave the agent that it was
  // started for.
  std::string agent_of(const McpExchange& exchange) const;
  Async<ToolAnswer> read_permitted(ToolCall& call, std::string uri);
  const Told* told_of(const std::string& session);  // null: nothing
  void remember(const ToolCall& call, const ToolAnswer& answer);
  void make_room(const ToolCall& call, bool is_unnamed);
  static json::object result_of(const ToolAnswer& answer, bool is_stateless);

  McpService& service_;
  Dispatcher& dispatcher_;
  OfferSettings settings_;
  std::optional<tools::Facts> facts_;
  // Sessions of principals that no call has named yet, from the oldest on.
  std::map<std::string, std::deque<std::string>> unnamed_;
  std::string key_;                           // signs what the client carries for us
  std::map<std::string, std::int64_t> used_;  // states that were taken, and until when each counts
};

// What the guest sees, in words: where it may write, which network, which limits.
tools::Facts facts_of(const session::SessionView& view);

std::string file_uri(const std::string& session, const std::string& name);

}  // namespace belljar::server
