// The calls of macOS that its launcher makes, made of Linux's, so that the launcher's own
// decisions can be tried here: a kqueue of poll, a posix_spawn of fork, a sandbox-exec that
// only checks how it is called. It proves nothing about macOS.
#include <dirent.h>
#include <fcntl.h>
#include <libproc.h>
#include <mach/mach_time.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"

namespace {

struct Actions {
  std::vector<std::pair<int, int>> copies;
  std::string folder;
};
struct Attributes {
  short flags = 0;
};

struct Watch {
  struct kevent event;
  int pidfd = -1;
};
std::map<int, std::vector<Watch>> queues;

// Fields of /proc/PID/stat from the third on, after the name.
std::vector<std::string> stat_of(const std::string& pid) {
  if (pid.find_first_not_of("0123456789") != pid.npos) return {};
  const std::string text = belljar::read_text("/proc/" + pid + "/stat").value_or("");
  std::vector<std::string> fields;
  for (std::size_t at = text.rfind(')') + 1; at < text.size() && text.size() > 1;) {
    const std::size_t end = std::min(text.find(' ', at + 1), text.size());
    fields.push_back(text.substr(at + 1, end - at - 1));
    at = end;
  }
  return fields;
}

}  // namespace

extern "C" {

int posix_spawn_file_actions_init(posix_spawn_file_actions_t* actions) {
  *actions = new Actions;
  return 0;
}
int posix_spawn_file_actions_destroy(posix_spawn_file_actions_t* actions) {
  delete static_cast<Actions*>(*actions);
  return 0;
}
int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t* actions, int from, int to) {
  if (from < 3) return EBADF;  // it could have been overwritten by the one before
  static_cast<Actions*>(*actions)->copies.emplace_back(from, to);
  return 0;
}
int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t* actions, const char* folder) {
  static_cast<Actions*>(*actions)->folder = folder;
  return 0;
}
int posix_spawnattr_init(posix_spawnattr_t* attributes) {
  *attributes = new Attributes;
  return 0;
}
int posix_spawnattr_destroy(posix_spawnattr_t* attributes) {
  delete static_cast<Attributes*>(*attributes);
  return 0;
}
int posix_spawnattr_setflags(posix_spawnattr_t* attributes, short flags) {
  static_cast<Attributes*>(*attributes)->flags = flags;
  return 0;
}
int posix_spawnattr_setsigmask(posix_spawnattr_t*, const sigset_t*) { return 0; }
int posix_spawnattr_setsigdefault(posix_spawnattr_t*, const sigset_t*) { return 0; }

int posix_spawn(pid_t* pid, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const argv[], char* const envp[]) {
  const bool sandboxed = std::strcmp(path, "/usr/bin/sandbox-exec") == 0 && argv[1] != nullptr &&
                         std::strcmp(argv[1], "-p") == 0 && argv[2] != nullptr &&
                         std::strncmp(argv[2], "(version 1)", 11) == 0 && argv[3] != nullptr;
  const short flags = static_cast<Attributes*>(*attributes)->flags;
  const bool apart =
      (flags & POSIX_SPAWN_SETSID) != 0 && (flags & POSIX_SPAWN_CLOEXEC_DEFAULT) != 0;
  if (!sandboxed || !apart) return EINVAL;
  const Actions& todo = *static_cast<Actions*>(*actions);
  *pid = ::fork();
  if (*pid != 0) return *pid < 0 ? errno : 0;
  ::setsid();
  for (const auto& [from, to] : todo.copies) ::dup2(from, to);
  if (!todo.folder.empty() && ::chdir(todo.folder.c_str()) < 0) ::_exit(127);
  ::syscall(SYS_close_range, 3, ~0U, 0);
  sigset_t none{};
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::execve(argv[3], argv + 3, envp);
  ::_exit(127);
}

int kqueue(void) {
  const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  queues[fd].clear();
  return fd;
}

int kevent(int queue, const struct kevent* changes, int count, struct kevent* events, int room,
           const struct timespec* time) {
  std::vector<Watch>& watches = queues[queue];
  for (int i = 0; i < count; ++i) {
    Watch watch{.event = changes[i]};
    if (watch.event.filter == EVFILT_PROC) {
      watch.pidfd = static_cast<int>(::syscall(SYS_pidfd_open, watch.event.ident, 0));
      if (watch.pidfd < 0) return -1;
    }
    watches.push_back(watch);
  }
  if (room == 0) return 0;
  std::vector<pollfd> fds;
  for (const Watch& watch : watches) {
    const int fd = watch.pidfd >= 0 ? watch.pidfd : static_cast<int>(watch.event.ident);
    const short events_of_it = watch.event.filter == EVFILT_WRITE ? POLLOUT : POLLIN;
    fds.push_back({fd, events_of_it, 0});
  }
  const int longest = static_cast<int>(time->tv_sec * 1000 + time->tv_nsec / 1'000'000);
  if (::poll(fds.data(), fds.size(), longest) < 0) return -1;
  int found = 0;
  std::vector<Watch> left;
  for (std::size_t i = 0; i < fds.size(); ++i) {
    const bool closed = (fds[i].revents & POLLNVAL) != 0;
    const bool ready = fds[i].revents != 0 && !closed;
    if (ready && found < room) events[found++] = watches[i].event;
    const bool once = watches[i].event.filter == EVFILT_PROC && ready;
    if (once) ::close(watches[i].pidfd);
    if (!closed && !once) left.push_back(watches[i]);
  }
  watches = std::move(left);
  return found;
}

int proc_listpgrppids(pid_t group, void* buffer, int size) {
  auto* pids = static_cast<pid_t*>(buffer);
  const int room = size / static_cast<int>(sizeof(pid_t));
  int found = 0;
  DIR* proc = ::opendir("/proc");
  while (const dirent* entry = ::readdir(proc)) {
    const std::vector<std::string> fields = stat_of(entry->d_name);
    if (fields.size() > 21 && fields[2] == std::to_string(group) && found < room)
      pids[found++] = std::atoi(entry->d_name);
  }
  ::closedir(proc);
  return found;
}

int proc_pid_rusage(int pid, int, rusage_info_t* buffer) {
  const std::vector<std::string> fields = stat_of(std::to_string(pid));
  if (fields.size() < 22) return -1;
  auto* info = reinterpret_cast<rusage_info_v2*>(buffer);
  const std::uint64_t tick = 1'000'000'000U / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  info->ri_user_time = std::stoull(fields[11]) * tick;
  info->ri_system_time = std::stoull(fields[12]) * tick;
  info->ri_phys_footprint =
      std::stoull(fields[21]) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return 0;
}

int proc_listpids(uint32_t, uint32_t, void*, int) { return 3 * sizeof(pid_t); }

int mach_timebase_info(struct mach_timebase_info* info) {
  *info = {1, 1};
  return 0;
}
}
