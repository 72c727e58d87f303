#include "layers/cgroup.h"

#include <dirent.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "base/file.h"
#include "base/syscall.h"

namespace belljar::cgroup {
namespace {

constexpr const char* kMount = "/sys/fs/cgroup";
constexpr std::string_view kPrefix = "belljar-";
constexpr std::string_view kTrial = "probe-";

bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    bool starts = at == 0 || text[at - 1] == ' ';
    std::size_t end = at + word.size();
    if (starts && (end == text.size() || text[end] == ' ' || text[end] == '\n')) return true;
  }
  return false;
}

bool has_controllers(const std::string& file) {
  std::string text = read_text(file).value_or("");
  return has_word(text, "memory") && has_word(text, "pids");
}

// Children of `group` can have limits: they can already, or may from now on.
// (A group that has processes of its own refuses, but for the root group.)
bool can_limit_children(const std::string& group) {
  const std::string control = group + "/cgroup.subtree_control";
  if (has_controllers(control)) return true;
  return has_controllers(group + "/cgroup.controllers") &&
         write_text(control, "+memory +pids").has_value();
}

bool can_make_groups(const std::string& group) {
  std::string trial =
      group + "/" + std::string(kPrefix) + std::string(kTrial) + std::to_string(::getpid());
  return ::mkdir(trial.c_str(), 0755) == 0 && ::rmdir(trial.c_str()) == 0;
}

std::string own_group() {
  std::string text = read_text("/proc/self/cgroup").value_or("");
  std::size_t at = text.find("0::/");
  if (at == text.npos) return {};
  std::string path = text.substr(at + 3, text.find('\n', at) - at - 3);
  return path == "/" ? kMount : kMount + path;
}

// "name value" lines, as in memory.events.
std::uint64_t counter(const std::string& file, std::string_view name) {
  std::string text = read_text(file).value_or("");
  std::size_t at = 0;
  while (at < text.size()) {
    std::string_view line = std::string_view(text).substr(at, text.find('\n', at) - at);
    at += line.size() + 1;
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ' ') continue;
    std::uint64_t value = 0;
    std::from_chars(line.data() + name.size() + 1, line.data() + line.size(), value);
    return value;
  }
  return 0;
}

// A supervisor that was killed could not remove its group: the next one does.
void remove_stale(const std::string& parent) {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(parent.c_str()), ::closedir);
  while (dir != nullptr) {
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) break;
    std::string_view name = entry->d_name;
    if (!name.starts_with(kPrefix)) continue;
    name.remove_prefix(kPrefix.size());
    if (name.starts_with(kTrial)) name.remove_prefix(kTrial.size());
    long pid = 0;
    std::from_chars(name.data(), name.data() + name.size(), pid);
    if (pid > 0 && ::access(("/proc/" + std::to_string(pid)).c_str(), F_OK) < 0)
      ::rmdir((parent + "/" + entry->d_name).c_str());  // EBUSY: not ours to force
  }
}

}  // namespace

Support probe() {
  struct statfs fs{};
  if (::statfs(kMount, &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
    return {.parent = {}, .why_not = "cgroup v2 is not mounted at /sys/fs/cgroup"};
  std::string own = own_group();
  if (own.empty()) return {.parent = {}, .why_not = "this process is in no cgroup v2"};
  std::string above = own == kMount ? own : own.substr(0, own.rfind('/'));
  for (const std::string& group : {own, above})
    if (can_limit_children(group) && can_make_groups(group))
      return {.parent = group, .why_not = {}};
  return {.parent = {}, .why_not = "no cgroup with the memory and pids controllers is delegated"};
}

std::optional<Plan> resolve(const Policy& policy, const Support& host) {
  const Limits& limits = policy.limits;
  if (host.parent.empty() || (!limits.memory_mb && !limits.procs)) return std::nullopt;
  Plan plan{.parent = host.parent, .memory_bytes = {}, .pids = {}};
  if (limits.memory_mb) plan.memory_bytes = *limits.memory_mb << 20;
  if (limits.procs) plan.pids = *limits.procs + 1;  // the jar's init is one more
  return plan;
}

Result<Group> Group::make(const Plan& plan) {
  static std::atomic<unsigned> count{0};
  remove_stale(plan.parent);
  Group group;
  group.path_ = plan.parent + "/" + std::string(kPrefix) + std::to_string(::getpid()) + "-" +
                std::to_string(count++);
  if (::mkdir(group.path_.c_str(), 0755) < 0) return fail("cgroup: mkdir " + group.path_, errno);
  group.dir_ = TRY(open_path(group.path_.c_str(), O_RDONLY | O_DIRECTORY));
  if (plan.memory_bytes) {
    TRY(write_text(group.path_ + "/memory.max", std::to_string(*plan.memory_bytes)));
    TRY(write_text(group.path_ + "/memory.oom.group", "1"));
    // Absent without swap support, and then there is nothing to forbid.
    (void)write_text(group.path_ + "/memory.swap.max", "0");
  }
  if (plan.pids) TRY(write_text(group.path_ + "/pids.max", std::to_string(*plan.pids)));
  return group;
}

Group& Group::operator=(Group&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(dir_, other.dir_);
  return *this;
}

Group::~Group() {
  if (!dir_) return;
  kill();
  // The last process may still be on its way out.
  constexpr int kTries = 100;
  for (int i = 0; i < kTries && ::rmdir(path_.c_str()) < 0 && errno == EBUSY; ++i)
    ::poll(nullptr, 0, 1);
}

Status Group::adopt(int pid) const {
  if (!dir_) return {};
  return write_text(path_ + "/cgroup.procs", std::to_string(pid));
}

void Group::kill() const {
  if (dir_) (void)write_text(path_ + "/cgroup.kill", "1");  // before Linux 5.14: init's end does it
}

bool Group::out_of_memory() const {
  return dir_ && counter(path_ + "/memory.events", "oom_kill") > 0;
}

bool Group::pids_limit_hit() const { return dir_ && counter(path_ + "/pids.events", "max") > 0; }

std::chrono::microseconds Group::cpu_time() const {
  // There whether or not the cpu controller is: it counts, and we look.
  return std::chrono::microseconds(dir_ ? counter(path_ + "/cpu.stat", "usage_usec") : 0);
}

std::optional<std::uint64_t> Group::kilobytes(const char* file) const {
  if (!dir_) return std::nullopt;
  std::optional<std::string> text = read_text(path_ + file);
  if (!text) return std::nullopt;
  return std::strtoull(text->c_str(), nullptr, 10) / 1024;
}

std::optional<std::uint64_t> Group::memory_kb() const { return kilobytes("/memory.current"); }

std::optional<std::uint64_t> Group::peak_memory_kb() const {
  return kilobytes("/memory.peak");  // Linux 5.19
}

}  // namespace belljar::cgroup
