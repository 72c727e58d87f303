#include "tools/beneath.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/syscall.h"

namespace belljar::tools {
namespace {

// The system call itself: the library's setgroups() changes every thread.
long set_groups(const std::vector<gid_t>& groups) {
  return ::syscall(SYS_setgroups, groups.size(), groups.data());
}

using Capabilities = std::array<__user_cap_data_struct, 2>;

// Of this thread alone.
bool get_capabilities(Capabilities& into) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  return ::syscall(SYS_capget, &header, into.data()) == 0;
}
bool set_capabilities(const Capabilities& to) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  return ::syscall(SYS_capset, &header, to.data()) == 0;
}

// Those that it has stay permitted, so that they can be taken up again.
bool lay_down_capabilities(Capabilities capabilities) {
  for (auto& half : capabilities) half.effective = 0;
  return set_capabilities(capabilities);
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

AsGuest::AsGuest(const std::optional<Ids>& guest) {
  if (!guest) return;
  const int count = ::getgroups(0, nullptr);
  groups_.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  failed_ = ::getgroups(count, groups_.data()) != count || !get_capabilities(capabilities_) ||
            set_groups({}) != 0;
  if (failed_) return;
  active_ = true;
  (void)::setfsgid(guest->gid);
  (void)::setfsuid(guest->uid);
  // They return what was before, and an invalid id changes nothing. The guest can be one whose
  // folder is root's: so it is not enough that with the user some capabilities go.
  failed_ = ::setfsuid(static_cast<uid_t>(-1)) != static_cast<int>(guest->uid) ||
            ::setfsgid(static_cast<gid_t>(-1)) != static_cast<int>(guest->gid) ||
            !lay_down_capabilities(capabilities_);
}

AsGuest::~AsGuest() {
  if (!active_) return;
  // What was there before can be had again, so none of these fails. The capabilities come first,
  // since groups need them, and last, since with the user some are taken up that were not there.
  (void)set_capabilities(capabilities_);
  (void)::setfsuid(::geteuid());
  (void)::setfsgid(::getegid());
  (void)set_groups(groups_);
  (void)set_capabilities(capabilities_);
}

}  // namespace belljar::tools
