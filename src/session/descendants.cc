#include "session/descendants.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <sstream>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/file.h"

namespace belljar::session {
namespace {

std::string proc(pid_t pid) { return "/proc/" + std::to_string(pid); }

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> pids;
  std::istringstream list(
      read_text(proc(pid) + "/task/" + std::to_string(pid) + "/children").value_or(""));
  for (pid_t child = 0; list >> child;) pids.push_back(child);
  return pids;
}

// The last number of the line is the one in its own namespace.
pid_t number_inside(pid_t pid) {
  std::istringstream status(read_text(proc(pid) + "/status").value_or(""));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("NSpid:")) continue;
    std::istringstream numbers(line.substr(6));
    pid_t last = 0;
    for (pid_t number = 0; numbers >> number;) last = number;
    return last;
  }
  return pid;  // a kernel without pid namespaces
}

struct Birth {
  pid_t parent = 0;
  pid_t group = 0;
  std::uint64_t time = 0;
};

// Fields 4, 5 and 22, counted from behind the name, in which anything may stand.
Birth birth_of(pid_t pid) {
  const std::string stat = read_text(proc(pid) + "/stat").value_or("");
  std::istringstream fields(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
  std::string skipped;
  Birth birth;
  fields >> skipped >> birth.parent >> birth.group;
  for (int i = 0; i < 16; ++i) fields >> skipped;
  fields >> birth.time;
  return birth;
}

void send(const Fd& pidfd, int signal) {
  // A failure means that it has ended.
  (void)::syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
}

void kill_below(pid_t parent, std::uint64_t since, int depth) {
  constexpr int kDeepest = 100;
  if (depth == kDeepest) return;
  for (pid_t child : children_of(parent)) {
    // A number may be given to somebody else; a descriptor stays with its process, so
    // what is asked after it was opened is asked of the right one.
    Fd held(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    const Birth birth = birth_of(child);
    if (!held || birth.parent != parent || birth.time < since) continue;
    send(held, SIGSTOP);  // or it would start others while its children end
    kill_below(child, since, depth + 1);
    send(held, SIGKILL);
  }
}

// Those of the group whose parents have ended. True: there were some.
bool kill_orphans(pid_t init, pid_t group, std::uint64_t since) {
  bool found = false;
  for (pid_t child : children_of(init)) {
    Fd held(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    const Birth birth = birth_of(child);
    if (!held || child == group || birth.parent != init || birth.group != group ||
        birth.time < since)
      continue;
    found = true;
    kill_below(child, since, 0);
    send(held, SIGKILL);
  }
  return found;
}

}  // namespace

std::uint64_t process_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const auto ticks = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  return static_cast<std::uint64_t>(now.tv_sec) * ticks +
         static_cast<std::uint64_t>(now.tv_nsec) * ticks / 1'000'000'000;
}

void kill_descendants(pid_t init, pid_t inside, std::uint64_t since) {
  // What is in the middle of a fork gets a child after all: look until nothing is new.
  constexpr int kMaxLooks = 10;
  for (pid_t child : children_of(init)) {
    if (number_inside(child) != inside) continue;
    kill_below(child, since, 0);
    for (int i = 0; i < kMaxLooks && kill_orphans(init, child, since); ++i) {
    }
  }
}

void kill_only(pid_t init, pid_t inside) {
  for (pid_t child : children_of(init)) {
    // Opened before its number is looked at: a descriptor stays with its process.
    Fd held(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    if (held && number_inside(child) == inside && birth_of(child).parent == init)
      send(held, SIGKILL);
  }
}

}  // namespace belljar::session
