#include "library.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <optional>

#include "launcher/wait.h"
#include "profile.h"

namespace bench {
namespace {

using belljar::Command;
using belljar::Jar;
using belljar::Plan;

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
  Work(std::string profile, Way way) : profile_(std::move(profile)), way_(way) {
    if (way != Way::fresh_plan) plan_.emplace(*plan_of(profile_));
  }

  Nanoseconds once() {
    const Command command{.arguments = {"/bin/true"}};
    if (way_ == Way::ready_jar) return spawn_in_ready_jar(command);
    const Nanoseconds began = now();
    std::optional<Plan> fresh;
    if (way_ == Way::fresh_plan) {
      belljar::Result<Plan> plan = plan_of(profile_);
      if (!plan) return -1;
      fresh = std::move(*plan);
    }
    belljar::Result<belljar::Outcome> outcome = belljar::run(fresh ? *fresh : *plan_, command);
    const Nanoseconds took = now() - began;
    return outcome && outcome->exit_code() == 0 ? took : -1;
  }

 private:
  Nanoseconds spawn_in_ready_jar(const Command& command) {
    belljar::Result<Jar> jar = Jar::start(*plan_);
    if (!jar) return -1;
    const Nanoseconds began = now();
    if (!jar->spawn(command)) return -1;
    for (;;) {
      auto event = jar->next_event();
      if (!event || !*event) return -1;
      if ((*event)->kind != belljar::protocol::Kind::exited) continue;
      return (*event)->value == 0 ? now() - began : -1;
    }
  }

  std::string profile_;
  Way way_;
  std::optional<Plan> plan_;
};

[[noreturn]] void serve(int socket_fd, std::string profile, Way way, std::size_t resident_mb) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!touch_memory(resident_mb)) ::_exit(1);
  Work work(std::move(profile), way);
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
