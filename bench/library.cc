#include "library.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "belljar/belljar.h"
#include "launcher/launch.h"
#include "profile.h"

namespace bench {
namespace {

bool touch_memory(std::size_t mb) {
  if (mb == 0) return true;
  const std::size_t size = mb << 20;
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  ::madvise(memory, size, MADV_NOHUGEPAGE);  // as a heap that grew bit by bit
  for (std::size_t at = 0; at < size; at += 4096) static_cast<volatile char*>(memory)[at] = 1;
  return true;
}

class Work {
 public:
  Work(const std::string& profile, Way way)
      : way_(way),
        policy_(*policy_of(profile)),
        plan_(*plan_of(profile)),
        pool_(policy_, way == Way::ready_jar ? 1 : 0) {}

  Nanoseconds once() {
    if (way_ == Way::fresh_plan) return run_once();
    return way_ == Way::one_plan ? start_once() : take_once();
  }

 private:
  Nanoseconds run_once() {
    const Nanoseconds began = now();
    belljar::Result<belljar::Outcome> outcome = belljar::run(policy_, command_);
    const Nanoseconds took = now() - began;
    return outcome && outcome->exit_code() == 0 ? took : -1;
  }

  // Below the public API, which makes a plan for each run.
  Nanoseconds start_once() {
    const belljar::launcher::Command command{.arguments = command_.arguments,
                                             .stdio_fds = {null_, null_, null_}};
    const Nanoseconds began = now();
    belljar::Result<belljar::launcher::Jar> jar = belljar::launcher::Jar::start(plan_, &command);
    if (!jar) std::fprintf(stderr, "launch: %s\n", jar.error().message().c_str());
    if (!jar || !exits_well(*jar)) return -1;
    jar->end();
    return now() - began;
  }

  static bool exits_well(belljar::launcher::Jar& jar) {
    for (;;) {
      pollfd ready{.fd = jar.control_fd(), .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, kPatienceMs) != 1) return false;
      auto event = jar.next_event();
      if (!event) return false;
      if (*event && (*event)->kind == belljar::protocol::Kind::exited) return (*event)->value == 0;
      if (!*event && jar.has_ended()) return false;
    }
  }

  Nanoseconds take_once() {
    if (!pool_.fill()) return -1;
    const Nanoseconds began = now();
    belljar::Result<belljar::Jar> jar = pool_.take();
    if (!jar) return -1;
    belljar::Result<belljar::Process> process = jar->spawn(command_);
    if (!process) return -1;
    belljar::Result<belljar::Outcome> outcome = process->wait();
    const Nanoseconds took = now() - began;
    return outcome && outcome->exit_code() == 0 ? took : -1;
  }

  static constexpr int kPatienceMs = 5000;

  int null_ = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  belljar::Command command_{
      .arguments = {"/bin/true"}, .in_fd = null_, .out_fd = null_, .err_fd = null_};
  Way way_;
  belljar::Policy policy_;
  belljar::Plan plan_;
  belljar::Pool pool_;
};

[[noreturn]] void serve(int socket_fd, std::string profile, Way way, std::size_t resident_mb) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!touch_memory(resident_mb)) ::_exit(1);
  Work work(profile, way);
  char ask = 0;
  while (::read(socket_fd, &ask, 1) == 1) {
    const Nanoseconds took = work.once();
    if (::write(socket_fd, &took, sizeof took) != sizeof took) break;
  }
  ::_exit(0);
}

}  // namespace

Launcher::Launcher(std::string profile, Way way, std::size_t resident_mb) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0) return;
  socket_ = sockets[0];
  pid_ = ::fork();
  if (pid_ == 0) {
    ::close(sockets[0]);
    serve(sockets[1], std::move(profile), way, resident_mb);
  }
  ::close(sockets[1]);
}

Launcher::~Launcher() {
  ::close(socket_);
  ::kill(pid_, SIGKILL);  // launchers forked later hold our socket too, so it sees no end of it
  ::waitpid(pid_, nullptr, 0);
}

Nanoseconds Launcher::launch() {
  Nanoseconds took = -1;
  if (::write(socket_, "x", 1) != 1 || ::read(socket_, &took, sizeof took) != sizeof took)
    return -1;
  return took;
}

}  // namespace bench
