#include "session/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <memory>
#include <set>

#include "base/syscall.h"
#include "base/utf8.h"
#include "session/mime.h"

namespace belljar::session {
namespace {

constexpr std::size_t kMaxListed = 1'000;
constexpr int kMaxDepth = 32;
// Of the paths in a snapshot, which each session keeps. It is 200 for each of 20,000 files.
constexpr std::size_t kMaxPathBytes = 4 << 20;

// Names of folders that hold what tools made for themselves.
constexpr std::array<std::string_view, 8> kSkipped = {
    "__pycache__", "node_modules", "site-packages", "target",
    "build",       "dist",         "venv",          "CMakeFiles"};

using Dir = std::unique_ptr<DIR, int (*)(DIR*)>;

Dir open_dir(int parent_fd, const char* name) {
  const int fd =
      ::openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return {nullptr, ::closedir};
  DIR* dir = ::fdopendir(fd);
  if (dir == nullptr) ::close(fd);
  return {dir, ::closedir};
}

bool is_skipped(std::string_view name) {
  return name.starts_with(".") || std::ranges::find(kSkipped, name) != kSkipped.end();
}

Version version_of(const struct stat& st) {
  return {.inode = st.st_ino,
          .size = static_cast<std::uint64_t>(st.st_size),
          .changed_ns = st.st_ctim.tv_sec * 1'000'000'000 + st.st_ctim.tv_nsec};
}

// Goes through the tree, as far as the guest sees it.
class Walk {
 public:
  Walk(Snapshot& snapshot, const Sight& sight, std::size_t most)
      : snapshot_(snapshot), sight_(sight), names_left_(most) {}

  void add_folder(const Dir& dir, const std::string& prefix, int depth) {
    const int dir_fd = ::dirfd(dir.get());
    if (dir_fd < 0) return;
    while (const dirent* entry = ::readdir(dir.get())) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (names_left_ == 0) {
        snapshot_.more = true;
        return;
      }
      --names_left_;
      if (!is_skipped(name)) add(dir_fd, prefix + name, entry->d_name, depth);
    }
  }

 private:
  void add(int dir_fd, const std::string& path, const char* name, int depth) {
    // A longer one could not be opened either.
    if (path.size() >= PATH_MAX) {
      snapshot_.more = true;
      return;
    }
    struct stat st{};
    if (::fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) return;
    if (!sight_.shows(path, st)) return;
    if (S_ISREG(st.st_mode)) add_file(path, version_of(st));
    if (!S_ISDIR(st.st_mode)) return;
    if (depth == kMaxDepth) {
      snapshot_.more = true;
      return;
    }
    const Dir inner = open_dir(dir_fd, name);
    const int inner_fd = inner ? ::dirfd(inner.get()) : -1;
    if (inner_fd < 0 || ::fstat(inner_fd, &st) < 0 || !sight_.shows(path, st) ||
        !sight_.may_read(inner_fd, st) || !sight_.may_enter(inner_fd, st))
      return;
    add_folder(inner, path + "/", depth + 1);
  }

  void add_file(const std::string& path, const Version& version) {
    if (path.size() > bytes_left_) {
      snapshot_.more = true;
      names_left_ = 0;
      return;
    }
    bytes_left_ -= path.size();
    snapshot_.files.emplace(path, version);
  }

  Snapshot& snapshot_;
  const Sight& sight_;
  std::size_t names_left_;  // that may still be looked at
  std::size_t bytes_left_ = kMaxPathBytes;
};

std::optional<std::string> read_content(int fd, std::size_t limit) {
  std::string content(limit + 1, '\0');  // one more, to see that it ends there
  std::size_t size = 0;
  while (size < content.size()) {
    ssize_t n = retry([&] { return ::read(fd, content.data() + size, content.size() - size); });
    if (n < 0) return std::nullopt;
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
  }
  if (size > limit) return std::nullopt;  // it has grown
  content.resize(size);
  return content;
}

std::optional<SessionFile> read_file(int workdir_fd, const Sight& sight, const std::string& name,
                                     std::size_t limit) {
  const Fd fd = open_seen(workdir_fd, sight, name);
  struct stat st{};
  if (!fd || ::fstat(fd.get(), &st) < 0 || !S_ISREG(st.st_mode)) return std::nullopt;
  SessionFile file{
      .name = name, .size = static_cast<std::uint64_t>(st.st_size), .mime = {}, .content = {}};
  if (file.size <= limit) {
    if (std::optional<std::string> content = read_content(fd.get(), file.size)) {
      file.has_content = true;
      file.is_text = is_utf8(*content) && content->find('\0') == content->npos;
      file.content = std::move(*content);
    }
  }
  file.mime = mime_of(name, file.is_text);
  file.name = repair_utf8(name);
  return file;
}

}  // namespace

Snapshot take_snapshot(int workdir_fd, const Sight& sight, std::size_t most) {
  Snapshot snapshot;
  Walk walk(snapshot, sight, most);
  if (const Dir dir = open_dir(workdir_fd, ".")) walk.add_folder(dir, "", 0);
  return snapshot;
}

std::uint64_t changed_bytes(const Snapshot& before, const Snapshot& after) {
  std::uint64_t sum = 0;
  for (const auto& [name, version] : after.files) {
    const auto was = before.files.find(name);
    if (was == before.files.end() || was->second != version) sum += version.size;
  }
  return sum;
}

Changes changed_files(int workdir_fd, const Sight& sight, const Snapshot& before,
                      const Snapshot& after, const std::vector<std::string>& wanted,
                      const FileLimits& limits) {
  Changes changes{.files = {}, .missing = {}, .more = after.more};
  std::size_t room = limits.total;
  auto add = [&](const std::string& name) {
    std::optional<SessionFile> file =
        read_file(workdir_fd, sight, name, std::min(limits.one, room));
    if (!file) return false;
    room -= file->content.size();
    changes.files.push_back(std::move(*file));
    return true;
  };
  for (const std::string& name : wanted)
    if (changes.files.size() == kMaxListed || !add(name)) changes.missing.push_back(name);
  const std::set<std::string> named(wanted.begin(), wanted.end());
  for (const auto& [name, version] : after.files) {
    const auto was = before.files.find(name);
    if ((was != before.files.end() && was->second == version) || named.contains(name)) continue;
    if (changes.files.size() == kMaxListed) {
      changes.more = true;
      break;
    }
    if (add(name)) continue;
    // Gone since, or not for the guest to read; what the name shows may be said.
    changes.files.push_back({.name = repair_utf8(name),
                             .size = version.size,
                             .mime = mime_of(name, false),
                             .content = {}});
  }
  return changes;
}

}  // namespace belljar::session
