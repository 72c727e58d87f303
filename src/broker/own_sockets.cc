#include "broker/own_sockets.h"

#include <linux/openat2.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <climits>

namespace belljar::broker {
namespace {

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Where what a descriptor leads to is now.
std::string place_of(int fd) {
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  std::array<char, PATH_MAX> path{};
  const ssize_t n = ::readlink(link.c_str(), path.data(), path.size());
  return {path.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

// The guest says "self" of itself.
std::string as_the_guest_means(const std::string& path, pid_t thread) {
  const std::string its_own = "/proc/" + std::to_string(thread);
  for (const std::string self : {"/proc/self/", "/proc/thread-self/"})
    if (path.starts_with(self)) return its_own + path.substr(self.size() - 1);
  return path.starts_with('/') ? path : its_own + "/cwd/" + path;
}

// `path` below `folder`, reached by folders alone, so that it is proved to lie there.
Fd open_beneath(int folder_fd, const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return Fd(static_cast<int>(::syscall(SYS_openat2, folder_fd, path.c_str(), &how, sizeof how)));
}

}  // namespace

OwnSockets::Found OwnSockets::find(const std::string& path, pid_t thread) const {
  const Fd asked(::open(as_the_guest_means(path, thread).c_str(), O_PATH | O_CLOEXEC));
  struct stat about{};
  if (!asked || ::fstat(asked.get(), &about) < 0) return {.socket = {}, .error = errno};
  if (!S_ISSOCK(about.st_mode)) return {.socket = {}, .error = ECONNREFUSED};
  for (const struct stat& granted : by_name_)
    if (is_same(granted, about)) return {.socket = Fd(::fcntl(asked.get(), F_DUPFD_CLOEXEC, 0))};
  const std::string place = place_of(asked.get());
  for (const Fd& folder : folders_) {
    const std::string above = place_of(folder.get()) + "/";
    if (!place.starts_with(above)) continue;
    Fd socket = open_beneath(folder.get(), place.substr(above.size()));
    struct stat found{};
    if (socket && ::fstat(socket.get(), &found) == 0 && is_same(found, about))
      return {.socket = std::move(socket)};
  }
  return {.socket = {}, .error = EACCES};
}

}  // namespace belljar::broker
