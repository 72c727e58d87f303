// What the MCP conformance suite calls by fixed names, on the stack that is shipped.
#pragma once

#include "base/random.h"
#include "server/mcp_service.h"
#include "server/secret.h"

namespace belljar::server {

class Fixtures : public McpProvider {
 public:
  explicit Fixtures(McpService& service) : service_(service) {}

  void add_tools(json::array& into) override;
  Async<std::optional<McpResult>> call_tool(McpExchange& exchange, std::string name,
                                            json::object arguments) override;
  void add_resources(const McpExchange& exchange, json::array& into) override;
  void add_templates(json::array& into) override;
  Async<std::optional<McpResult>> read(McpExchange& exchange, std::string uri) override;
  void add_prompts(json::array& into) override;
  Async<std::optional<McpResult>> prompt(McpExchange& exchange, std::string name,
                                         json::object arguments) override;
  Async<std::vector<std::string>> complete(McpExchange&, std::string, std::string,
                                           std::string) override {
    co_return std::vector<std::string>();
  }

 private:
  Async<void> pause(int ms);
  Async<McpResult> ask(McpExchange& exchange, std::string method, json::object params,
                       std::string capability, std::string label);
  McpResult input_required(McpExchange& exchange, const std::string& tool);
  std::optional<McpResult> content(const std::string& name);

  McpService& service_;
  std::string key_ = random_hex(16);
};

}  // namespace belljar::server
