// The servers of a person that may have something to approve, each by the socket that
// server/approval_socket.h describes. One that cannot be asked is an error with its path, so that
// nobody takes it for one that has nothing to ask.
#pragma once

#include <boost/json.hpp>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace belljar::cli {

class ApprovalServer {
 public:
  static Result<ApprovalServer> connect(const std::string& path);

  Status send(const boost::json::object& request);
  // What waits there.
  Result<boost::json::array> pending();
  // Error: it does not want the decision, or has not heard of it.
  Status decide(const boost::json::object& decision);

  // For who watches: reads what has come, then takes one message after the other.
  int fd() const { return fd_.get(); }
  Status read();
  std::optional<boost::json::object> take();

 private:
  ApprovalServer(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
  Result<boost::json::object> answer();
  std::optional<boost::json::object> take_line();
  std::unexpected<Error> cannot(const std::string& why, int err = 0,
                                const std::string& hint = {}) const;

  std::string path_;
  Fd fd_;
  std::string in_;
  std::size_t searched_ = 0;                // of it, without finding the end of a line
  std::deque<boost::json::object> events_;  // that came while an answer was awaited
};

struct ApprovalServers {
  std::deque<ApprovalServer> found;
  std::vector<Error> lost;  // could not be asked
};

// Error: the folder of their sockets is no safe place.
Result<ApprovalServers> approval_servers();

}  // namespace belljar::cli
