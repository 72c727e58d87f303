#include "layers/process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/child.h"
#include "base/fd.h"

namespace belljar::process {

void apply(Terminal terminal, const Child& child) noexcept {
  // In the caller's session a guest in the background could ignore SIGTTOU, make its
  // group the foreground one and read what the person types.
  if (terminal == Terminal::none)
    child.must(::setsid() >= 0, "process: own session");
  else
    child.must(::setpgid(0, 0) == 0, "process: own process group");
  Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  child.must(bool(null), "process: open /dev/null");
  for (int fd : {0, 1, 2})
    child.must(null.get() == fd || ::dup3(null.get(), fd, 0) == fd, "process: replace stdio");
  if (null.get() <= 2) (void)null.release();  // the caller had closed that one
}

int open_children(const Child& child) noexcept {
  Fd low(::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC));
  child.must(bool(low), "process: open the list of children");
  int high = ::fcntl(low.get(), F_DUPFD_CLOEXEC, kFirstHighFd);
  child.must(high >= 0, "process: keep the list of children");
  return high;
}

void keep_only(std::initializer_list<Move> moves, const Child& child) noexcept {
  child.must(::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0,
             "process: close descriptors");
  for (const Move& move : moves)
    if (move.from >= 0)
      child.must(::dup3(move.from, move.to, 0) == move.to, "process: place a descriptor");
}

}  // namespace belljar::process
