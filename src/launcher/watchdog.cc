#include "launcher/watchdog.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/child.h"
#include "base/syscall.h"

namespace belljar::launcher {
namespace {

constexpr int kCounters = 5;

// Text of all tables that may be read at one look; ten times what sixty honest processes have.
// A guest that has more has memory in the kernel that nobody counts, and would keep us busy.
constexpr std::size_t kMaxText = 16 << 20;

// Looks between two searches for shared mappings, if the address space stays as it is.
constexpr int kLooksBetween = 4;

// A System V semaphore is a cache line in the kernel, a message has a header, and either
// is rounded up, at most to the double.
constexpr std::uint64_t kSemaphoreBytes = 64;
constexpr std::uint64_t kMessageHeader = 64;

// Takes what it read from `left`, and stops when there is none.
std::string read_all(int fd, std::size_t& left) {
  std::string text;
  char page[4096];  // /proc gives no more at once
  while (left > 0) {
    const auto at = static_cast<off_t>(text.size());
    ssize_t n = retry([&] { return ::pread(fd, page, sizeof page, at); });
    if (n <= 0) break;  // the end, or its process has just ended
    text.append(page, static_cast<std::size_t>(n));
    left -= std::min(left, static_cast<std::size_t>(n));
  }
  return text;
}

std::string read_all_at(int dir_fd, const std::string& path, std::size_t& left) {
  Fd file(::openat(dir_fd, path.c_str(), O_RDONLY | O_CLOEXEC));
  return file ? read_all(file.get(), left) : std::string();
}

// For what is known to be short.
std::string read_at(int dir_fd, const std::string& path) {
  Fd file(::openat(dir_fd, path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(4096, '\0');
  ssize_t n = file ? retry([&] { return ::read(file.get(), text.data(), text.size()); }) : 0;
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));  // it has just ended
  return text;
}

template <class F>
void for_each_line(std::string_view text, F&& f) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    f(line);
  }
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

// The number after a name at the start of a line, in the kB of /proc; or nothing.
std::optional<std::uint64_t> bytes_after(std::string_view text, std::string_view name) {
  std::size_t at = text.find(name);
  if (at == text.npos) return std::nullopt;
  return number(word(text.substr(at + name.size()), 0)) * 1024;
}

// Counts a page shared by three processes as a third in each, and leaves out what is
// counted once for all, by its object. A process that made itself unreadable counts in
// full.
std::uint64_t share_of_memory(int proc_fd, const std::string& task, std::uint64_t resident) {
  const std::string text = read_at(proc_fd, task + "/smaps_rollup");
  std::optional<std::uint64_t> all = bytes_after(text, "\nPss:");
  if (!all) return resident;
  return *all - std::min(*all, bytes_after(text, "\nPss_Shmem:").value_or(0));
}

// The device that memory without a name in the file system is on: shared anonymous
// mappings, memfds, System V segments. As /proc/PID/maps writes it.
std::string nameless_device() {
  Fd file(::memfd_create("belljar-device", MFD_CLOEXEC));
  struct stat st{};
  if (!file || ::fstat(file.get(), &st) < 0) return {};
  char text[32];
  std::snprintf(text, sizeof text, "%02x:%02x", major(st.st_dev), minor(st.st_dev));
  return text;
}

std::uint64_t hex(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
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

// /proc shows a process by its first thread. When that has ended it shows no memory, and the
// process may still have all it had, by its other threads. Each of these has a folder in /proc,
// though not in the listing of it.
Watchdog::Memory Watchdog::memory_of(const std::string& pid) const {
  auto shown_by = [&](const std::string& task) -> Memory {
    const std::string statm = read_at(proc_.get(), task + "/statm");
    return {task, number(word(statm, 0)) * page_size(), number(word(statm, 1)) * page_size()};
  };
  const Memory first = shown_by(pid);
  if (first.mapped > 0) return first;
  const std::string tasks = pid + "/task";
  for (const std::string& task : numbers_in(proc_.get(), tasks.c_str()))
    if (Memory memory = shown_by(task); memory.mapped > 0) return memory;
  return first;  // it has ended as a whole
}

// What stays when no process has it mapped.
std::uint64_t Watchdog::kept_by_the_kernel() {
  std::uint64_t bytes = 0;
  struct statfs fs{};
  if (::fstatfs(tmpfs_.get(), &fs) == 0)
    bytes += (fs.f_blocks - fs.f_bfree) * static_cast<std::uint64_t>(fs.f_bsize);
  // Each begins with a heading, in which there are no numbers.
  // key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap
  for_each_line(read_all(segments_.get(), text_left_), [&](std::string_view line) {
    bytes += number(word(line, 14)) + number(word(line, 15));
  });
  // key msqid perms cbytes qnum …
  for_each_line(read_all(queues_.get(), text_left_), [&](std::string_view line) {
    bytes += 2 * (number(word(line, 3)) + number(word(line, 4)) * kMessageHeader);
  });
  // key semid perms nsems …
  for_each_line(read_all(semaphores_.get(), text_left_),
                [&](std::string_view line) { bytes += number(word(line, 3)) * kSemaphoreBytes; });
  return bytes;
}

std::uint64_t Watchdog::page_tables(const std::vector<Memory>& memories) const {
  std::uint64_t bytes = 0;
  for (const Memory& memory : memories)
    bytes += bytes_after(read_at(proc_.get(), memory.task + "/status"), "\nVmPTE:").value_or(0);
  return bytes;
}

// Shared memory without a name, as far as it is or was mapped: MADV_DONTNEED makes it
// nobody's and leaves it there. Segments are counted already, by what they hold.
std::uint64_t Watchdog::shared_mappings(const std::vector<Memory>& memories) {
  static const std::string device = nameless_device();
  std::map<std::uint64_t, std::uint64_t> sizes;
  for (const Memory& memory : memories) {
    const std::string maps = read_all_at(proc_.get(), memory.task + "/maps", text_left_);
    // Lines of: begin-end permissions offset device inode name.
    for_each_line(maps, [&](std::string_view line) {
      if (word(line, 3) != device || word(line, 5).starts_with("/SYSV")) return;
      std::string_view range = word(line, 0);
      const std::size_t dash = std::min(range.find('-'), range.size() - 1);
      const std::uint64_t length = hex(range.substr(dash + 1)) - hex(range.substr(0, dash));
      std::uint64_t& size = sizes[number(word(line, 4))];
      size = std::max(size, hex(word(line, 2)) + length);
    });
  }
  std::uint64_t sum = 0;
  for (auto& [inode, size] : sizes) {
    // A part that was unmapped since is still there.
    if (auto before = shared_sizes_.find(inode); before != shared_sizes_.end())
      size = std::max(size, before->second);
    sum += size;
  }
  shared_sizes_ = std::move(sizes);
  return sum;
}

std::uint64_t Watchdog::memory_bytes(std::uint64_t limit) {
  text_left_ = kMaxText;
  const std::uint64_t bytes = sum_of_memory(limit);
  return text_left_ > 0 ? bytes : std::max(bytes, limit + 1);
}

std::uint64_t Watchdog::sum_of_memory(std::uint64_t limit) {
  std::vector<Memory> memories;
  std::uint64_t mapped = 0;
  std::uint64_t sum = 0;
  for (const std::string& pid : processes()) {
    const Memory& memory = memories.emplace_back(memory_of(pid));
    mapped += memory.mapped;
    sum += memory.resident;
  }
  std::uint64_t other = kept_by_the_kernel();
  // One page of page table, eight bytes for each page: so much address space is needed.
  constexpr std::uint64_t kMappedPerTable = 512;
  if (mapped / kMappedPerTable > limit / 8) other += page_tables(memories);
  // What does not fit into the address space cannot be hidden in it.
  if (mapped <= limit) {
    shared_bytes_ = 0;
  } else {
    const std::uint64_t change =
        mapped > mapped_then_ ? mapped - mapped_then_ : mapped_then_ - mapped;
    if (++looks_since_ >= kLooksBetween || change > limit / 16) {
      shared_bytes_ = shared_mappings(memories);
      mapped_then_ = mapped;
      looks_since_ = 0;
    }
  }
  other += shared_bytes_;
  if (sum + other <= limit) return sum + other;

  if (shared_bytes_ == 0) other += shared_mappings(memories);
  std::uint64_t shares = 0;
  for (const Memory& memory : memories)
    shares += share_of_memory(proc_.get(), memory.task, memory.resident);
  return shares + other;
}

Watchdog::Ticks Watchdog::ticks_of(const std::string& pid) const {
  const std::string text = read_at(proc_.get(), pid + "/stat");
  std::string_view after_name =
      std::string_view(text).substr(std::min(text.rfind(')') + 1, text.size()));
  // Counted from the state: utime and stime are 11 and 12, the reaped children's 13, 14,
  // threads 17.
  auto field = [&](int n) { return number(word(after_name, n)); };
  return {.started = field(19),
          .own = field(11) + field(12),
          .reaped = field(13) + field(14),
          .threads = field(17)};
}

// The time of a process that has ended is added to who waits for it; if SIGCHLD is
// ignored, to nobody's.
std::uint64_t Watchdog::lost_since_last_look(Times& now) const {
  std::uint64_t gone = 0;
  for (const auto& [pid, before] : times_) {
    auto at = now.find(pid);
    if (at == now.end() || at->second.started != before.started) gone += before.own + before.reaped;
  }
  auto passed_on = [&] {
    std::uint64_t ticks = 0;
    for (const auto& [pid, before] : times_) {
      auto at = now.find(pid);
      if (at != now.end() && at->second.started == before.started)
        ticks += at->second.reaped - std::min(before.reaped, at->second.reaped);
    }
    return ticks;
  };
  if (gone <= passed_on()) return 0;
  // One may have ended after we had looked at who waited for it.
  for (auto& [pid, ticks] : now) ticks.reaped = std::max(ticks.reaped, ticks_of(pid).reaped);
  return gone - std::min(gone, passed_on());
}

std::chrono::milliseconds Watchdog::cpu_time() {
  static const auto ticks_per_second = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  Times now;
  std::uint64_t ticks = 0;
  tasks_ = 0;
  for (const std::string& pid : processes()) {
    const Ticks& used = now[pid] = ticks_of(pid);
    ticks += used.own + used.reaped;
    tasks_ += used.threads;
  }
  lost_ticks_ += lost_since_last_look(now);
  times_ = std::move(now);
  return std::chrono::milliseconds((ticks + lost_ticks_) * 1000 / ticks_per_second);
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
  watchdog.segments_ = Fd(fds[2]);
  watchdog.queues_ = Fd(fds[3]);
  watchdog.semaphores_ = Fd(fds[4]);
  return watchdog;
}

void hand_out_counters(int control_fd, const Child& child) noexcept {
  const Fd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Fd tmpfs(::open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const Fd segments(::open("/proc/sysvipc/shm", O_RDONLY | O_CLOEXEC));
  const Fd queues(::open("/proc/sysvipc/msg", O_RDONLY | O_CLOEXEC));
  const Fd semaphores(::open("/proc/sysvipc/sem", O_RDONLY | O_CLOEXEC));
  child.must(proc && tmpfs && segments && queues && semaphores, "open the jar's counters");
  const int fds[kCounters] = {proc.get(), tmpfs.get(), segments.get(), queues.get(),
                              semaphores.get()};
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
