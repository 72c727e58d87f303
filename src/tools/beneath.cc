#include "tools/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/syscall.h"

namespace belljar::tools {
namespace {

constexpr uid_t kNobody = 65534;

// The system call itself: the library's setgroups() changes every thread.
long set_groups(const std::vector<gid_t>& groups) {
  return ::syscall(SYS_setgroups, groups.size(), groups.data());
}

}  // namespace

Fd open_name(int folder_fd, const std::string& name, int flags) {
  open_how how{};
  how.flags = static_cast<unsigned>(flags | O_NOFOLLOW | O_CLOEXEC);
  if ((flags & O_PATH) == 0) how.flags |= O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return Fd(static_cast<int>(
      retry([&] { return ::syscall(SYS_openat2, folder_fd, name.c_str(), &how, sizeof how); })));
}

Fd open_again(int path_fd, int flags) {
  // A link of our own process, which no guest has a hand in.
  const std::string link = "/proc/self/fd/" + std::to_string(path_fd);
  return Fd(retry([&] { return ::open(link.c_str(), flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); }));
}

Result<std::string> read_link(int path_fd) {
  char target[4096];
  const ssize_t size = ::readlinkat(path_fd, "", target, sizeof target);
  if (size < 0) return refuse_errno("read a symbolic link", errno);
  if (static_cast<std::size_t>(size) == sizeof target)
    return refuse_errno("read a symbolic link", ENAMETOOLONG);
  return std::string(target, static_cast<std::size_t>(size));
}

Result<Fd> duplicate(int fd) {
  Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) return refuse_errno("duplicate a descriptor", errno);
  return copy;
}

AsOthers::AsOthers(bool really) {
  if (!really || ::geteuid() != 0) return;
  const int count = ::getgroups(0, nullptr);
  groups_.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  failed_ = ::getgroups(count, groups_.data()) != count || set_groups({}) != 0;
  if (failed_) return;
  active_ = true;
  // With the user go the capabilities that override modes, for this thread's file accesses
  // alone (capabilities(7)), so it comes last.
  (void)::setfsgid(kNobody);
  (void)::setfsuid(kNobody);
  // They return what was before, and an invalid id changes nothing.
  failed_ = ::setfsuid(static_cast<uid_t>(-1)) != static_cast<int>(kNobody) ||
            ::setfsgid(static_cast<gid_t>(-1)) != static_cast<int>(kNobody);
}

AsOthers::~AsOthers() {
  if (!active_) return;
  (void)::setfsuid(::geteuid());
  (void)::setfsgid(::getegid());
  (void)set_groups(groups_);  // it worked with none, and these were there before
}

}  // namespace belljar::tools
