// The messages of MCP: JSON-RPC 2.0, one at a time (batches are gone since 2025-06-18).
// Whoever sends them may send anything; reading ends in a message or in an error to
// send back.
#pragma once

#include <boost/json.hpp>
#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <variant>

namespace belljar::server {

namespace json = boost::json;

// The code of a call may have 16 MiB, and escapes make it longer.
inline constexpr std::size_t kMaxMcpMessage = std::size_t{48} << 20;

namespace mcp_code {
enum Code : int {
  parse_error = -32700,
  invalid_request = -32600,
  no_method = -32601,
  invalid_params = -32602,
  internal = -32603,
  header_mismatch = -32020,
  missing_capability = -32021,
  unsupported_version = -32022,
};
}  // namespace mcp_code

struct McpError {
  int code = 0;
  std::string message;
  json::object data;
};
using McpResult = std::expected<json::object, McpError>;

inline std::unexpected<McpError> mcp_fail(int code, std::string message, json::object data = {}) {
  return std::unexpected(McpError{code, std::move(message), std::move(data)});
}

struct McpRequest {
  json::value id;  // a string or a whole number
  std::string method;
  json::object params;
};
struct McpNotice {
  std::string method;
  json::object params;
};
struct McpResponse {
  json::value id;
  McpResult result;
};
using McpMessage = std::variant<McpRequest, McpNotice, McpResponse>;

struct McpUnreadable {
  json::value id;  // null where it has none
  McpError error;
};

std::expected<McpMessage, McpUnreadable> read_message(std::string_view text);
// A whole number, or a text that is not long.
bool is_id(const json::value& value);

// Each is one line, without its end.
std::string request_text(std::string_view id, std::string_view method, json::object params);
std::string notice_text(std::string_view method, json::object params);
std::string response_text(const json::value& id, McpResult result);

// What is there and of that kind; else null.
const json::object* object_at(const json::object& object, std::string_view name);
const json::string* string_at(const json::object& object, std::string_view name);
std::string text_at(const json::object& object, std::string_view name);  // or empty

}  // namespace belljar::server
