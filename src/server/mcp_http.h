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

#include <map>
#include <memory>
#include <string>

#include "server/mcp_http_session.h"

namespace belljar::server {

inline constexpr std::size_t kMaxMcpSessions = 1000;
inline constexpr std::size_t kMaxMcpSessionsOfOne = 64;  // principal
// What is kept of streams that have ended, of one principal, besides the last of them.
inline constexpr std::size_t kMaxOldBytes = std::size_t{32} << 20;

class McpHttp {
 public:
  // `idle`: after which a session that nobody uses or listens to ends.
  McpHttp(McpService& service, std::chrono::milliseconds idle) : service_(service), idle_(idle) {}
  McpHttp(const McpHttp&) = delete;
  McpHttp& operator=(const McpHttp&) = delete;
  ~McpHttp();

  void handle(McpHttpRequest request, McpHttpAnswer answer);
  // Ends every stream: the server stops.
  void close();
  // The same of one principal's, whose sessions end.
  void close(const std::string& principal);

 private:
  class Once;

  void post(McpHttpRequest& request, McpHttpAnswer answer);
  void post_stateless(McpHttpRequest& request, McpRequest message, McpHttpAnswer answer);
  void begin_session(McpHttpRequest& request, McpMessage message, McpHttpAnswer answer);
  void get(const McpHttpRequest& request, McpHttpAnswer answer);
  std::shared_ptr<McpHttpSession> find(const McpHttpRequest& request, const McpHttpAnswer& answer);
  void forget_idle();
  void forget_old(const std::string& principal);
  bool make_room(const std::string& principal);

  McpService& service_;
  std::chrono::milliseconds idle_;
  std::map<std::string, std::shared_ptr<McpHttpSession>> sessions_;
  std::map<Once*, std::shared_ptr<Once>> once_;
};

}  // namespace belljar::server
