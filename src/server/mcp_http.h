// MCP over Streamable HTTP, without the HTTP: requests in, answers out by the functions that
// the front gives. The front has checked who asks (token, Host, Origin) and how large it is.
//
//   POST    a message. An answer is JSON where it is all there is to say, else a stream
//   GET     what belongs to no request; or, with Last-Event-ID, the rest of a stream
//   DELETE  the end of a session of the protocol
//
// A stream of the stateful era outlives its connection: who comes back hears the rest. In
// the stateless era who hangs up has cancelled.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/mcp_service.h"

namespace belljar::server {

struct McpHttpRequest {
  std::string method;
  std::map<std::string, std::string, std::less<>> headers;  // names in lower case
  std::string body;
  std::string principal;
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

class McpHttp {
 public:
  explicit McpHttp(McpService& service) : service_(service) {}
  McpHttp(const McpHttp&) = delete;
  McpHttp& operator=(const McpHttp&) = delete;
  ~McpHttp();

  void handle(McpHttpRequest request, McpHttpAnswer answer);
  // Ends every stream: the server stops.
  void close();

 private:
  class Session;
  class Stream;
  class Once;

  void post(McpHttpRequest& request, McpHttpAnswer answer);
  void post_stateless(const McpHttpRequest& request, McpRequest message, McpHttpAnswer answer);
  void get(const McpHttpRequest& request, McpHttpAnswer answer);
  std::shared_ptr<Session> find(const McpHttpRequest& request, const McpHttpAnswer& answer);
  void forget_idle();

  McpService& service_;
  std::map<std::string, std::shared_ptr<Session>> sessions_;
  std::map<Once*, std::shared_ptr<Once>> once_;
};

}  // namespace belljar::server
