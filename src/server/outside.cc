#include "server/outside.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

namespace belljar::server {
namespace {

// Device and inode of a namespace; 0: it cannot be seen.
std::pair<dev_t, ino_t> namespace_of(const std::string& process, const char* kind) {
  struct stat about{};
  const std::string path = "/proc/" + process + "/ns/" + kind;
  if (::stat(path.c_str(), &about) < 0) return {};
  return {about.st_dev, about.st_ino};
}

}  // namespace

bool is_outside(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.pid <= 0) return false;
  // No jar of an ordinary user's has root's number; and of root's processes such a user sees
  // no namespaces.
  if (peer.uid == 0 && ::geteuid() != 0) return true;
  if (peer.uid != ::geteuid()) return false;
  for (const char* kind : {"pid", "user"}) {
    const auto mine = namespace_of("self", kind);
    if (mine.second == 0 || mine != namespace_of(std::to_string(peer.pid), kind)) return false;
  }
  return true;
}

}  // namespace belljar::server
