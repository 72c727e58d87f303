// OwnerKey: how the person who started a server proves it on the server's local sockets.
//
// A user number proves nothing there: without namespaces of its own a guest has the server's,
// and is in the same pid and user namespace. So each start makes a secret, and puts it into a
// file for each local socket, in the runtime folder, which only the owner and root can read and
// no guest is granted: Landlock denies it where mounts do not hide it. It ends with the server.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"

namespace belljar::server {

// A key on disk, locked as long as its server lives, and removed with this object.
class KeyFile {
 public:
  KeyFile(KeyFile&& other) noexcept;
  KeyFile& operator=(KeyFile&&) = delete;
  KeyFile(const KeyFile&) = delete;
  KeyFile& operator=(const KeyFile&) = delete;
  ~KeyFile();

 private:
  friend class OwnerKey;
  KeyFile(std::string path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  Fd lock_;
};

class OwnerKey {
 public:
  OwnerKey();  // a fresh one
  // Compares in constant time.
  bool is(std::string_view given) const;
  // For those who find this socket, which is there already. `folder` is one that no guest is
  // granted.
  Result<KeyFile> put(const std::string& folder, const std::string& socket_path) const;

 private:
  std::string text_;
};

// For who asks the server that has this socket. Its key is in one of the folders, or beside it.
Result<std::string> read_owner_key(std::vector<std::string> folders,
                                   const std::string& socket_path);

// Removes the keys of servers that have ended.
void sweep_keys(const std::string& folder);

}  // namespace belljar::server
