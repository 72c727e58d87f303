// One client of the stateful era over HTTP: a stream for each of its requests, and one for what
// belongs to none.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "server/mcp_http_stream.h"
#include "server/mcp_service.h"

namespace belljar::server {

class McpHttpSession {
 public:
  // Told when one of its streams has ended: what is kept of it has grown old.
  using OnOld = std::function<void()>;
  McpHttpSession(McpService& service, std::string id, std::string principal,
                 std::chrono::milliseconds idle, OnOld on_old);
  McpHttpSession(const McpHttpSession&) = delete;
  McpHttpSession& operator=(const McpHttpSession&) = delete;
  ~McpHttpSession();

  void post(McpMessage message, McpHttpAnswer answer, std::shared_ptr<const void> place);
  void get(McpHttpAnswer answer, const std::string* last_event);

  const std::string& id() const { return id_; }
  const std::string& principal() const { return peer_->principal(); }
  // Streams that have ended and are kept for who comes back.
  std::vector<std::shared_ptr<McpHttpStream>> old_streams() const;
  bool idle() const { return unused_for() > idle_; }
  // Nothing while something runs or somebody listens.
  Clock::duration unused_for() const;

 private:
  using Stream = std::shared_ptr<McpHttpStream>;

  McpHttpHeaders headers() const { return {{"Mcp-Session-Id", id_}}; }
  void attach(const Stream& stream, McpHttpAnswer answer);
  void hear(const Stream& stream, const std::shared_ptr<Cancel>& gone);
  void send(McpConnection::Send message);
  Stream find(const std::string& id) const;
  void forget_old();

  std::string id_;
  std::chrono::milliseconds idle_;
  OnOld on_old_;
  Stream general_;
  std::map<std::string, Stream> streams_;  // by request
  std::deque<std::pair<std::shared_ptr<Cancel>, std::unique_ptr<Cancel::Hearing>>> hearings_;
  std::shared_ptr<McpPeer> peer_;
  std::uint64_t made_ = 0;
  Clock::time_point used_ = Clock::now();
};

}  // namespace belljar::server
