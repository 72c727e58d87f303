#include "server/mcp_http_exchange.h"

#include "base/base64.h"
#include "server/mcp_connection.h"

namespace belljar::server {
namespace {

// A header's value may be coded where it is not plain ASCII.
std::string header_text(const std::string& value) {
  constexpr std::string_view kBegin = "=?base64?";
  constexpr std::string_view kEnd = "?=";
  if (!value.starts_with(kBegin) || !value.ends_with(kEnd)) return value;
  const std::string_view coded =
      std::string_view(value).substr(kBegin.size(), value.size() - kBegin.size() - kEnd.size());
  return from_base64(coded).value_or(value);
}

}  // namespace

const std::string* header(const McpHttpRequest& request, std::string_view name) {
  const auto found = request.headers.find(name);
  return found != request.headers.end() ? &found->second : nullptr;
}

McpHttpHeaders json_headers() { return {{"Content-Type", "application/json"}}; }

void refuse(const McpHttpAnswer& answer, int status, const json::value& id, const McpError& error) {
  answer.whole(status, json_headers(), response_text(id, std::unexpected(error)));
}

void refuse(const McpHttpAnswer& answer, int status, std::string message) {
  refuse(answer, status, nullptr, {mcp_code::invalid_request, std::move(message), {}});
}

int status_of(int code) {
  switch (code) {
    case 0:
      return 200;
    case mcp_code::no_method:
      return 404;
    case mcp_code::internal:
      return 500;
    default:
      return 400;
  }
}

std::string event_text(const std::string& id, const std::string& data) {
  return (id.empty() ? "" : "id: " + id + "\n") + "event: message\ndata: " + data + "\n\n";
}

std::optional<McpError> disagreement(const McpHttpRequest& request, const McpRequest& message) {
  auto mismatch = [](std::string what) {
    return McpError{mcp_code::header_mismatch, std::move(what), {}};
  };
  const json::object* meta = object_at(message.params, "_meta");
  const std::string version = meta != nullptr ? text_at(*meta, kVersionKey) : "";
  const std::string* said = header(request, "mcp-protocol-version");
  if (said == nullptr) return mismatch("the header MCP-Protocol-Version is missing");
  if (!version.empty() && *said != version)
    return mismatch("the header MCP-Protocol-Version is not that of the body");
  const std::string* method = header(request, "mcp-method");
  if (method == nullptr || *method != message.method)
    return mismatch("the header Mcp-Method is not the method of the body");
  std::string_view key;
  if (message.method == "tools/call" || message.method == "prompts/get") key = "name";
  if (message.method == "resources/read") key = "uri";
  if (key.empty()) return std::nullopt;
  const std::string* name = header(request, "mcp-name");
  if (name == nullptr || header_text(*name) != text_at(message.params, key))
    return mismatch("the header Mcp-Name is not that of the body");
  return std::nullopt;
}

}  // namespace belljar::server
