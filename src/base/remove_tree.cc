#include "base/remove_tree.h"

#include <dirent.h>
#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/fd.h"

namespace belljar {
namespace {

using Dir = std::unique_ptr<DIR, int (*)(DIR*)>;

Dir open_dir(int parent_fd, const char* name) {
  Fd fd(::openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  DIR* dir = fd ? ::fdopendir(fd.get()) : nullptr;
  if (dir != nullptr) (void)fd.release();  // the stream's now
  return {dir, ::closedir};
}

// Without these bits not even its owner can enter a folder.
void open_up(int parent_fd, const char* name) {
#ifdef __linux__
  if (Fd folder(::openat(parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)); folder)
    (void)::chmod(("/proc/self/fd/" + std::to_string(folder.get())).c_str(), 0700);
#else
  (void)::fchmodat(parent_fd, name, 0700, AT_SYMLINK_NOFOLLOW);
#endif
}

// Removes a tree of any depth with few descriptors: what lies deeper than some levels is
// moved to the top first. Every name is looked up in its parent's descriptor, so a folder
// that somebody swaps for a symlink leads nowhere.
class TreeRemoval {
 public:
  TreeRemoval(int top_fd, const std::function<bool()>& gives_up)
      : top_fd_(top_fd), gives_up_(gives_up) {}

  // False: nothing more can be done, whether it is empty or not.
  bool pass() {
    progress_ = false;
    if (Dir top = open_dir(top_fd_, ".")) empty(top, 0);
    return progress_ && !given_up_;
  }

 private:
  static constexpr int kLevels = 64;

  void empty(const Dir& dir, int depth) {
    const int fd = ::dirfd(dir.get());
    while (const dirent* entry = ::readdir(dir.get())) {
      if (!given_up_ && gives_up_) given_up_ = gives_up_();
      if (given_up_) return;
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (::unlinkat(fd, entry->d_name, 0) == 0)
        progress_ = true;
      else if (depth == kLevels)
        move_up(fd, entry->d_name);
      else
        remove_folder(fd, entry->d_name, depth);
    }
  }

  void remove_folder(int parent_fd, const char* name, int depth) {
    open_up(parent_fd, name);
    if (Dir dir = open_dir(parent_fd, name)) empty(dir, depth + 1);
    if (::unlinkat(parent_fd, name, AT_REMOVEDIR) == 0) progress_ = true;
  }

  void move_up(int parent_fd, const char* name) {
    const std::string to = "belljar-removes-" + std::to_string(moved_++);
    if (::renameat(parent_fd, name, top_fd_, to.c_str()) == 0) progress_ = true;
  }

  int top_fd_;
  const std::function<bool()>& gives_up_;
  bool given_up_ = false;
  std::uint64_t moved_ = 0;
  bool progress_ = false;
};

}  // namespace

void remove_tree(const std::string& path, const std::function<bool()>& gives_up) {
  open_up(AT_FDCWD, path.c_str());
  Fd top(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (top) {
    TreeRemoval removal(top.get(), gives_up);
    while (removal.pass()) {
    }
  }
  (void)::rmdir(path.c_str());  // what cannot be removed now, the next start tries again
}

}  // namespace belljar
