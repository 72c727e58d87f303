#include "plan/scratch.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/remove_tree.h"

namespace belljar {
namespace {

constexpr const char* kFolder = "/tmp";
constexpr std::string_view kPrefix = "belljar-";

void remove_stale() {
  std::error_code ignored;  // another belljar may be removing the same one
  for (const auto& entry : std::filesystem::directory_iterator(kFolder, ignored)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    const long pid = std::strtol(name.c_str() + kPrefix.size(), nullptr, 10);
    struct stat st{};
    const bool ours =
        ::lstat(entry.path().c_str(), &st) == 0 && st.st_uid == ::geteuid() && S_ISDIR(st.st_mode);
    if (pid > 0 && ours && ::access(("/proc/" + std::to_string(pid)).c_str(), F_OK) < 0)
      remove_tree(entry.path());
  }
}

}  // namespace

Result<std::string> make_scratch_folder() {
  remove_stale();
  std::string path =
      std::string(kFolder) + "/" + std::string(kPrefix) + std::to_string(::getpid()) + "-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return fail("make a temporary folder in /tmp", errno);
  return path;
}

}  // namespace belljar
