#include "plan/scratch.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/remove_tree.h"

namespace belljar {
namespace {

// belljar-PID-SPACE-XXXXXX, and nothing else: a person may have folders of similar names.
constexpr const char* kFolder = kScratchFolder;
constexpr std::string_view kPrefix = "belljar-";
constexpr std::string_view kRandom = "XXXXXX";

// Of those who count processes as we do: to who shares only the folder with us, a number that
// we do not know may be a process.
std::string space_of_pids() {
  struct stat space{};
  return "-" + std::to_string(::stat("/proc/self/ns/pid", &space) == 0 ? space.st_ino : 0) + "-";
}

std::optional<pid_t> maker_of(std::string_view name, const std::string& space) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(name.begin(), name.end(), pid);
  name.remove_prefix(static_cast<std::size_t>(end - name.begin()));
  if (error != std::errc() || pid <= 0 || !name.starts_with(space)) return std::nullopt;
  name.remove_prefix(space.size());
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) != 0; };
  if (name.size() != kRandom.size() || !std::ranges::all_of(name, is_plain)) return std::nullopt;
  return pid;
}

bool is_gone(std::string_view name, const std::string& space) {
  const std::optional<pid_t> maker = maker_of(name, space);
  return maker && ::kill(*maker, 0) < 0 && errno == ESRCH;
}

bool is_stale(const std::filesystem::path& path, const std::string& space) {
  struct stat st{};
  return is_gone(path.filename().native(), space) && ::lstat(path.c_str(), &st) == 0 &&
         st.st_uid == ::geteuid() && S_ISDIR(st.st_mode);
}

}  // namespace

std::string makers_prefix() {
  return std::string(kPrefix) + std::to_string(::getpid()) + space_of_pids();
}

bool maker_is_gone(std::string_view name) { return is_gone(name, space_of_pids()); }

void remove_stale_scratch_folders(const std::function<bool()>& gives_up) {
  const std::string space = space_of_pids();
  std::error_code ignored;  // another belljar may be removing the same one
  for (const auto& entry : std::filesystem::directory_iterator(kFolder, ignored))
    if (is_stale(entry.path(), space)) remove_tree(entry.path(), gives_up);
}

Result<std::string> make_scratch_folder() {
  std::string path = std::string(kFolder) + "/" + makers_prefix() + std::string(kRandom);
  if (::mkdtemp(path.data()) == nullptr) return fail("make a temporary folder in /tmp", errno);
  return path;
}

}  // namespace belljar
