// Where the server listens: an address with a port, or a socket in the file system.
#pragma once

#include <string>
#include <string_view>

#include "base/address.h"
#include "base/fd.h"

namespace belljar::server {

struct ListenAddress {
  std::string path;   // of a local socket; else
  Endpoint endpoint;  // an address and a port; port 0: any
  bool is_local() const { return !path.empty(); }
  bool is_loopback() const {
    return is_local() || endpoint.address.scope() == belljar::Scope::loopback;
  }
};

// ADDRESS:PORT, [ADDRESS]:PORT, localhost:PORT, or unix:PATH
Result<ListenAddress> parse_listen(std::string_view text);

// A local socket is 0600. One that a server left behind is replaced; one that answers,
// and anything else that is there, is an error.
Result<Fd> open_listener(const ListenAddress& address);
// What it came to: the port too.
std::string listener_name(int listener_fd, const ListenAddress& address);

// Removes a socket's file when the server ends, if it is still ours.
class SocketFile {
 public:
  explicit SocketFile(std::string path);
  SocketFile(SocketFile&& other) noexcept;
  SocketFile& operator=(SocketFile&&) = delete;
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;
  ~SocketFile();

 private:
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace belljar::server
