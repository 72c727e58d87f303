// HttpServer: HTTP/1.1 on TCP and local sockets. What it defends against: clients that
// are slow, silent, many, or that send too much. It knows no routes: it asks whether a
// request may come in once its head is there, and for its answer once its body is.
//
// One connection has one request at a time; when all places are taken, the connection
// that has been idle for longest makes room.
#pragma once

#include <chrono>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/loop.h"
#include "server/message.h"

namespace belljar::server {

struct HttpLimits {
  std::size_t header_bytes = 16 << 10;
  std::size_t connections = 16'384;
  std::chrono::milliseconds idle = std::chrono::seconds(120);   // between requests
  std::chrono::milliseconds header = std::chrono::seconds(10);  // from its first byte
  std::chrono::milliseconds body = std::chrono::seconds(30);    // and longer for a large one
  std::chrono::milliseconds write = std::chrono::seconds(30);   // the same
};

// How large the body may be, or why the request is refused.
using Admission = std::expected<std::uint64_t, Response>;

struct HttpHandler {
  std::function<Admission(Request&)> admit;
  // So much of its body is there: why no more of it is wanted, if so.
  std::function<std::optional<Response>(const Request&, std::size_t bytes)> hold;
  std::function<Async<Response>(Request)> answer;
};

class HttpServer {
 public:
  HttpServer(Loop& loop, HttpLimits limits, HttpHandler handler);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  ~HttpServer();

  void listen(Fd listener);
  // No new connections, no second requests; idle connections are closed.
  void drain();
  // Until the last connection has gone, or that time has come.
  Async<bool> drained(Clock::time_point until);
  // For what begins from now on.
  void set_limits(HttpLimits limits);
  std::size_t connections() const;
  std::uint64_t refused_connections() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // connections that the loop still holds need it
};

}  // namespace belljar::server
