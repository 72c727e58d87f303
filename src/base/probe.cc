#include "base/probe.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "base/fd.h"
#include "base/syscall.h"

namespace belljar {
namespace {

// Long enough for a fork of a large process on a busy machine: what is not found is refused.
constexpr int kTimeLimitMs = 10'000;

}  // namespace

std::string Tried::reason() const {
  if (timed_out) return "did not answer in time";
  if (killed) return "killed by the kernel";
  return err == 0 ? "" : strerrordesc_np(err);
}

Tried try_in_child(const std::function<int()>& attempt) {
  Result<Pipe> pipe = make_pipe();
  if (!pipe) return {.err = pipe.error().err};
  pid_t pid = ::fork();
  if (pid < 0) return {.err = errno};
  if (pid == 0) {
    int err = attempt();
    // Nothing to do if this fails: the parent sees an early end of the pipe.
    [[maybe_unused]] ssize_t n = ::write(pipe->write.get(), &err, sizeof err);
    ::_exit(0);
  }
  pipe->write.reset();

  Tried tried;
  pollfd ready{.fd = pipe->read.get(), .events = POLLIN, .revents = 0};
  tried.timed_out = retry([&] { return ::poll(&ready, 1, kTimeLimitMs); }) == 0;
  if (tried.timed_out)
    ::kill(pid, SIGKILL);  // ESRCH is as good: it has ended
  else
    tried.killed = retry([&] { return ::read(pipe->read.get(), &tried.err, sizeof tried.err); }) !=
                   sizeof tried.err;
  retry([&] { return ::waitpid(pid, nullptr, 0); });
  return tried;
}

}  // namespace belljar
