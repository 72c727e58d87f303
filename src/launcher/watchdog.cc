#include "launcher/watchdog.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "base/child.h"
#include "base/syscall.h"

namespace belljar::launcher {
namespace {

constexpr int kCounters = 3;

std::string read_at(int dir_fd, const std::string& path) {
  Fd file(::openat(dir_fd, path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(4096, '\0');
  ssize_t n = file ? retry([&] { return ::read(file.get(), text.data(), text.size()); }) : 0;
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));  // it has just ended
  return text;
}

// The n-th word, counted from 0.
std::string_view word(std::string_view text, int n) {
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\n"), text.size()));
    std::string_view found = text.substr(0, text.find_first_of(" \t\n"));
    if (n-- == 0 || found.empty()) return found;
    text.remove_prefix(found.size());
  }
}

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::uint64_t page_size() {
  static const auto size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

// Counts a page shared by three processes as a third in each. A process that
// made itself unreadable counts in full.
std::uint64_t share_of_memory(int proc_fd, const std::string& pid, std::uint64_t resident) {
  std::string text = read_at(proc_fd, pid + "/smaps_rollup");
  std::size_t at = text.find("\nPss:");
  return at == text.npos ? resident : number(word(std::string_view(text).substr(at), 1)) * 1024;
}

// The numbered entries of a folder of /proc.
std::vector<std::string> numbers_in(int dir_fd, const char* path) {
  std::vector<std::string> names;
  Fd folder(::openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return names;  // it has just ended
  std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(folder.release()), ::closedir);
  while (const dirent* entry = dir ? ::readdir(dir.get()) : nullptr)
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) != 0)
      names.emplace_back(entry->d_name);
  return names;
}

}  // namespace

void Watchdog::add_descendants(const std::string& pid, std::vector<std::string>& pids) const {
  pids.push_back(pid);
  const std::string tasks = pid + "/task";
  for (const std::string& task : numbers_in(proc_.get(), tasks.c_str())) {
    const std::string children = read_at(proc_.get(), tasks + "/" + task + "/children");
    for (int i = 0; !word(children, i).empty(); ++i)
      add_descendants(std::string(word(children, i)), pids);
  }
}

std::vector<std::string> Watchdog::processes() const {
  if (init_ == 0) return numbers_in(proc_.get(), ".");
  std::vector<std::string> pids;
  add_descendants(std::to_string(init_), pids);
  return pids;
}

std::uint64_t Watchdog::memory_bytes(std::uint64_t limit) {
  std::uint64_t other = 0;
  struct statfs fs{};
  if (::fstatfs(tmpfs_.get(), &fs) == 0)
    other += (fs.f_blocks - fs.f_bfree) * static_cast<std::uint64_t>(fs.f_bsize);
  // Lines of: key shmid perms size cpid lpid nattch uid gid cuid cgid times rss swap.
  std::string segments(16384, '\0');
  ssize_t n = ::pread(shared_memory_.get(), segments.data(), segments.size(), 0);
  std::string_view rest(segments.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  for (bool heading = true; !rest.empty(); heading = false) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    // A segment that nobody has attached is in no process's memory.
    if (!heading && word(line, 6) == "0") other += number(word(line, 14));
  }

  std::uint64_t resident = 0;
  for (const std::string& pid : processes())
    resident += number(word(read_at(proc_.get(), pid + "/statm"), 1)) * page_size();
  if (resident + other <= limit) return resident + other;

  std::uint64_t shares = 0;
  for (const std::string& pid : processes()) {
    std::uint64_t own = number(word(read_at(proc_.get(), pid + "/statm"), 1)) * page_size();
    shares += share_of_memory(proc_.get(), pid, own);
  }
  return shares + other;
}

std::chrono::milliseconds Watchdog::cpu_time() {
  static const auto ticks_per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  std::uint64_t ticks = 0;
  const std::string init = std::to_string(init_ == 0 ? 1 : init_);
  for (const std::string& pid : processes()) {
    std::string text = read_at(proc_.get(), pid + "/stat");
    std::string_view after_name =
        std::string_view(text).substr(std::min(text.rfind(')') + 1, text.size()));
    // Counted from the state: utime and stime are 11 and 12, the reaped children's 13, 14.
    const int last = pid == init ? 14 : 12;
    for (int field = 11; field <= last; ++field) ticks += number(word(after_name, field));
  }
  return std::chrono::milliseconds(ticks * 1000 / ticks_per_second);
}

Result<Watchdog> Watchdog::receive(int control_fd, int init) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(kCounters * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n = retry([&] { return ::recvmsg(control_fd, &message, MSG_CMSG_CLOEXEC); });
  const cmsghdr* rights = CMSG_FIRSTHDR(&message);
  if (n != 1 || rights == nullptr || rights->cmsg_len != CMSG_LEN(kCounters * sizeof(int)))
    return fail("receive the jar's counters", n < 0 ? errno : EPROTO);
  int fds[kCounters];
  std::memcpy(fds, CMSG_DATA(rights), sizeof fds);
  Watchdog watchdog;
  watchdog.init_ = init;
  watchdog.proc_ = Fd(fds[0]);
  watchdog.tmpfs_ = Fd(fds[1]);
  watchdog.shared_memory_ = Fd(fds[2]);
  return watchdog;
}

void hand_out_counters(int control_fd, const Child& child) noexcept {
  const Fd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Fd tmpfs(::open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Fd segments(::open("/proc/sysvipc/shm", O_RDONLY | O_CLOEXEC));
  child.must(proc && tmpfs && segments, "open the jar's counters");
  const int fds[kCounters] = {proc.get(), tmpfs.get(), segments.get()};
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof fds);
  std::memcpy(CMSG_DATA(rights), fds, sizeof fds);
  child.must(::sendmsg(control_fd, &message, MSG_NOSIGNAL) == 1, "hand out the jar's counters");
}

}  // namespace belljar::launcher
