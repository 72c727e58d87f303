// The events of one request of the stateful era, or of none, while connections come and go: who
// comes back hears the rest.
#pragma once

#include <deque>

#include "base/loop.h"
#include "server/mcp_connection.h"
#include "server/mcp_http_exchange.h"

namespace belljar::server {

// Bytes that are kept of a stream for who comes back, besides its last event.
inline constexpr std::size_t kMaxKeptBytes = std::size_t{4} << 20;

class McpHttpStream {
 public:
  explicit McpHttpStream(std::string id, std::size_t most = kMaxKeptBytes)
      : id_(std::move(id)), most_(most) {}

  void send(McpConnection::Send message);

  // From now on this connection hears it. The headers are for an answer of either kind.
  void attach(McpHttpAnswer answer, McpHttpHeaders headers);
  // The same for who comes back: all after that event.
  void resume(McpHttpAnswer answer, std::size_t after, McpHttpHeaders headers);
  void begin();

  // The connection is to go; the stream is still there.
  void detach();
  // The connection has gone.
  void lost(const Cancel* gone);

  bool ended() const { return ended_; }
  Clock::time_point ended_at() const { return ended_at_; }
  // What is kept of it.
  std::size_t bytes() const { return bytes_; }
  void forget();
  bool forgotten() const { return forgotten_; }
  bool heard() const { return answer_.has_value(); }
  // Until its end, whoever hears it then.
  void hold(std::shared_ptr<const void> place) { place_ = std::move(place); }
  const std::string& id() const { return id_; }

 private:
  std::string event_id(std::size_t number) const { return id_ + "-" + std::to_string(number); }
  void keep(std::string text);
  void end();

  std::string id_;
  std::size_t most_;
  std::optional<McpHttpAnswer> answer_;
  std::shared_ptr<const void> place_;
  McpHttpHeaders headers_;
  bool begun_ = false;
  bool ended_ = false;
  bool forgotten_ = false;
  Clock::time_point ended_at_;
  std::deque<std::string> kept_;
  std::size_t bytes_ = 0;
  std::size_t first_ = 0;  // the number of the first that is kept
  std::size_t next_ = 0;
};

}  // namespace belljar::server
