// OwnSockets: which socket files a guest may call: those in folders that it may write, and those
// that were granted by name.
//
// A path is judged by what it leads to and not by its words, since the guest may put a symlink
// anywhere on the way, and change it meanwhile. Needs Linux 5.6 (openat2).
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "base/fd.h"

namespace belljar::broker {

class OwnSockets {
 public:
  // `folders` are opened as paths; `by_name` are sockets.
  OwnSockets(std::vector<Fd> folders, std::vector<struct stat> by_name)
      : folders_(std::move(folders)), by_name_(std::move(by_name)) {}

  // The socket, opened as a path, or the errno of a connect to it. `thread` is the guest's, whose
  // working folder and descriptors the path may speak of.
  struct Found {
    Fd socket;
    int error = 0;
  };
  Found find(const std::string& path, pid_t thread) const;

 private:
  std::vector<Fd> folders_;
  std::vector<struct stat> by_name_;
};

}  // namespace belljar::broker
