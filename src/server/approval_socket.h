// By which a person at a terminal decides: a Unix socket that only its owner can use, with
// lines of JSON. A guest that could reach it would approve its own calls, so whoever comes
// from another pid or user namespace than ours is turned away, and so is whoever does not begin
// with the owner's key.
//
//   {"key":…}                                         nothing, or the end of the connection
//   {"op":"list"}                                     {"pending":[…]}
//   {"op":"watch"}                                    {"event":"required"|"decided", …} …
//   {"op":"decide","approval_id":…,"decision":…,      {"ok":true} or {"error":…}
//    "scope":…,"pattern":…,"message":…}
#pragma once

#include <memory>
#include <string>

#include "server/approvals.h"
#include "server/listeners.h"
#include "server/owner_key.h"

namespace belljar::server {

class ApprovalSocket {
 public:
  // The socket, and the key for it in `key_folder`, are removed with this object.
  static Result<std::unique_ptr<ApprovalSocket>> listen(Loop& loop, Approvals& approvals,
                                                        const OwnerKey& key,
                                                        const std::string& key_folder,
                                                        const std::string& path);
  ApprovalSocket(const ApprovalSocket&) = delete;
  ApprovalSocket& operator=(const ApprovalSocket&) = delete;
  ~ApprovalSocket();

 private:
  class Client;
  ApprovalSocket(SocketFile file, KeyFile key_file, std::shared_ptr<Stream> listening)
      : file_(std::move(file)), key_file_(std::move(key_file)), listening_(std::move(listening)) {}
  static Async<void> accept(std::shared_ptr<Stream> listener, Loop& loop, Approvals& approvals,
                            OwnerKey key, std::shared_ptr<Cancel> end);

  SocketFile file_;
  KeyFile key_file_;
  std::shared_ptr<Stream> listening_;
  std::shared_ptr<Cancel> end_ = std::make_shared<Cancel>();
};

// What a decision says on the wire. Error: it makes no sense.
Result<Decision> parse_decision(const boost::json::object& object, std::string by);

}  // namespace belljar::server
