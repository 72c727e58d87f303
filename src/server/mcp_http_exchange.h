// One request of MCP over HTTP and its answer, as the front and the endpoint pass them to one
// another.
#pragma once

#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/cancel.h"
#include "server/mcp_message.h"

namespace belljar::server {

struct McpHttpRequest {
  std::string method;
  std::map<std::string, std::string, std::less<>> headers;  // names in lower case
  std::string body;
  std::optional<std::expected<McpMessage, McpUnreadable>> message = {};  // the body, if it was read
  std::string principal;
  std::shared_ptr<const void> place = {};  // among the requests that run: held until it is answered
};

using McpHttpHeaders = std::vector<std::pair<std::string, std::string>>;

// Either whole(), or begin() and then event() until end(). All are called on the loop. After
// `gone` was asked nothing is called any more.
struct McpHttpAnswer {
  std::function<void(int status, McpHttpHeaders headers, std::string body)> whole;
  std::function<void(McpHttpHeaders headers)> begin;  // 200, text/event-stream
  std::function<void(std::string text)> event;        // as it goes over the wire
  std::function<void()> end;
  std::shared_ptr<Cancel> gone;
};

const std::string* header(const McpHttpRequest& request, std::string_view name);
McpHttpHeaders json_headers();

void refuse(const McpHttpAnswer& answer, int status, const json::value& id, const McpError& error);
void refuse(const McpHttpAnswer& answer, int status, std::string message);

// The status of an answer that is an error of that code, in the stateless era; 0: it is none.
int status_of(int code);

// One event as it goes over the wire.
std::string event_text(const std::string& id, const std::string& data);

// Where the headers of the stateless era do not say what the body says: what a proxy goes by
// must be what we go by.
std::optional<McpError> disagreement(const McpHttpRequest& request, const McpRequest& message);

}  // namespace belljar::server
