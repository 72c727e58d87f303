// By which a person at a terminal decides: a Unix socket that only its owner can use, with
// lines of JSON. A guest that could reach it would approve its own calls, so whoever comes
// from another pid or user namespace than ours is turned away.
//
//   {"op":"list"}                                     {"pending":[…]}
//   {"op":"watch"}                                    {"event":"required"|"decided", …} …
//   {"op":"decide","approval_id":…,"decision":…,      {"ok":true} or {"error":…}
//    "scope":…,"pattern":…,"message":…}
#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <memory>
#include <string>

#include "server/approvals.h"

namespace belljar::server {

class ApprovalSocket {
 public:
  // The socket is removed with this object.
  static Result<std::unique_ptr<ApprovalSocket>> listen(Loop& loop, Approvals& approvals,
                                                        std::string path);
  ApprovalSocket(const ApprovalSocket&) = delete;
  ApprovalSocket& operator=(const ApprovalSocket&) = delete;
  ~ApprovalSocket();

 private:
  using Local = asio::local::stream_protocol;
  class Client;
  explicit ApprovalSocket(std::string path) : path_(std::move(path)) {}
  static Async<void> accept(std::shared_ptr<Local::acceptor> acceptor, Loop& loop,
                            Approvals& approvals, std::shared_ptr<Cancel> end);

  std::string path_;
  std::shared_ptr<Local::acceptor> listening_;
  std::shared_ptr<Cancel> end_ = std::make_shared<Cancel>();
};

// What a decision says on the wire, for REST too. Error: it makes no sense.
Result<Decision> parse_decision(const boost::json::object& object, std::string by);

}  // namespace belljar::server
