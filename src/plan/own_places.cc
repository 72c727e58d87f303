#include "plan/own_places.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <optional>

#include "plan/scratch.h"

namespace belljar {
namespace {

std::string base_folder(const Caller& caller, std::string_view variable,
                        const std::string& otherwise) {
  for (const std::string& entry : caller.environment)
    if (entry.starts_with(variable) && entry.substr(variable.size()).starts_with('/'))
      return entry.substr(variable.size());
  return otherwise;
}

// Only what is ours: in /tmp anybody can put something at the path.
bool is_strangers(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0 && (!S_ISDIR(st.st_mode) || st.st_uid != ::geteuid());
}

}  // namespace

std::string real_name(const std::string& path, Tracer& tracer) {
  std::string above = path;
  std::string rest;
  for (;;) {
    if (Result<Traced> traced = tracer.trace(above); traced)
      return (traced->path == "/" && !rest.empty() ? "" : traced->path) + rest;
    const std::size_t slash = above.rfind('/');
    if (slash == above.npos) return path;
    rest = above.substr(slash) + rest;
    above.resize(std::max<std::size_t>(slash, 1));
  }
}

OwnPlaces::OwnPlaces(const Caller& caller, Tracer& tracer) {
  auto add = [&](std::string path, bool is_folder) {
    std::string real = real_name(path, tracer);
    places_.push_back({std::move(path), std::move(real), is_folder});
  };
  const std::string config =
      base_folder(caller, "XDG_CONFIG_HOME=", caller.home + "/.config") + "/belljar";
  const std::string state =
      base_folder(caller, "XDG_STATE_HOME=", caller.home + "/.local/state") + "/belljar";
  for (const std::string& folder : {config, state}) add(folder, true);
  const std::string uid = std::to_string(::geteuid());
  for (const std::string& folder :
       {base_folder(caller, "XDG_RUNTIME_DIR=", "/run/user/" + uid) + "/belljar",
        "/run/user/" + uid + "/belljar", "/tmp/belljar-run-" + uid})
    if (!is_strangers(folder)) add(folder, true);
  // Files there may be symlinks to where a person keeps them.
  for (const std::string& file : {config + "/config.toml", state + "/trusted", state + "/tokens"})
    add(file, false);
  for (const std::string& path : caller.own) add(path, false);
}

Status OwnPlaces::refuse(const std::string& real, std::string_view from) const {
  const auto own =
      std::ranges::find_if(places_, [&](const Place& place) { return is_below(real, place.real); });
  if (own == places_.end()) return {};
  return fail(std::string(from) + ": " + real +
                  " is belljar's own, and no guest sees its settings, tokens and sockets",
              0, "leave it out, or grant a copy elsewhere");
}

namespace {

// A folder with this mode is one that we made, and may remove.
constexpr mode_t kMade = S_ISVTX | 0700;

bool is_made_by_us(int folder_fd) {
  struct stat st{};
  return ::fstat(folder_fd, &st) == 0 && st.st_uid == ::geteuid() &&
         (st.st_mode & 07777 & ~mode_t{S_ISGID}) == kMade;
}

// Six letters, so that it has the form of scratch folders' names.
std::string hold_name() {
  static std::atomic<unsigned> last = 0;
  std::string number = std::to_string(last++ % 1'000'000);
  return makers_prefix() + std::string(6 - number.size(), '0') + number;
}

// Those of processes that were killed.
void remove_stale_holds(int folder_fd) {
  std::error_code ignored;  // another one may be doing the same
  const std::string path = "/proc/self/fd/" + std::to_string(folder_fd);
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored))
    if (maker_is_gone(entry.path().filename().native()))
      (void)::unlinkat(folder_fd, entry.path().filename().c_str(), 0);
}

Fd open_folder(int parent_fd, const char* name) {
  return Fd(::openat(parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Whether the guest, which has our rights at most, could not make it either.
bool nobody_can_make(int parent_fd, int err) {
  struct stat st{};
  if (err == EROFS) return true;
  return (err == EACCES || err == EPERM) && ::fstat(parent_fd, &st) == 0 &&
         st.st_uid != ::geteuid();
}

enum class Found { there, removed_meanwhile, impossible };

// Goes down from /, in `folder`. `ours` are those on the way that can go again.
Result<Found> make_or_find(const std::string& real, Fd& folder,
                           std::vector<Leftovers::Entry>& ours) {
  for (const std::filesystem::path& part : std::filesystem::path(real).relative_path()) {
    Fd next = open_folder(folder.get(), part.c_str());
    if (!next && errno == ENOENT) {
      const int err = ::mkdirat(folder.get(), part.c_str(), kMade) == 0 ? 0 : errno;
      if (err == ENOENT) return Found::removed_meanwhile;
      if (nobody_can_make(folder.get(), err)) return Found::impossible;
      if (err != 0 && err != EEXIST)
        return fail("make " + real, err, err == EACCES ? "chmod u+rwx the folder above it" : "");
      next = open_folder(folder.get(), part.c_str());
    }
    if (!next && errno == ENOENT) return Found::removed_meanwhile;
    if (!next) return fail("open " + real, errno);
    if (is_made_by_us(next.get())) ours.push_back({std::move(folder), part});
    folder = std::move(next);
  }
  return Found::there;
}

}  // namespace

Status hold_folder(const std::string& real, Leftovers& leftovers) {
  constexpr int kAttempts = 1'000;  // each fails because another run has just ended
  for (int i = 0; i < kAttempts; ++i) {
    Fd folder(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder) return fail("open /", errno);
    std::vector<Leftovers::Entry> ours;
    const Found found = TRY(make_or_find(real, folder, ours));
    if (found == Found::removed_meanwhile) continue;
    if (found == Found::impossible || !is_made_by_us(folder.get())) return {};
    remove_stale_holds(folder.get());
    std::string name = hold_name();
    const Fd hold(
        ::openat(folder.get(), name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
    if (!hold && errno != ENOENT) return fail("hold " + real, errno);
    if (!hold) continue;
    leftovers.add_hold({std::move(folder), std::move(name)}, std::move(ours));
    return {};
  }
  return fail("hold " + real + ": others remove it each time", 0, "try again");
}

}  // namespace belljar
