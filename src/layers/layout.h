// Layout: the files of a policy, found on this host. Every path is opened and
// identified once, here, so that the layers that render it (view, landlock)
// speak of the same inodes.
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "belljar/policy.h"

namespace belljar {

// A path of the host that the policy names, opened.
struct Place {
  std::string path;    // canonical, on the host
  std::string inside;  // where the guest sees it; most often the same
  Access access = Access::read;
  std::string from;  // which key asked for it
  Fd fd;             // O_PATH
  struct stat st{};
  bool owned = false;   // belongs to the caller: as root it is shown as the jar's own
  bool device = false;  // a device node, which must stay usable
  // Only there so that a protected path below it cannot be moved away with it.
  bool pin = false;

  bool is_dir() const { return S_ISDIR(st.st_mode); }
};

struct Link {
  std::string inside;
  std::string text;
};

// A small file that exists only inside.
struct Text {
  enum class Append { nothing, user, group };  // the jar's own line, where it has a uid of its own
  std::string inside;
  std::string content;
  Append append = Append::nothing;
};

// A folder that is empty, writable, in memory, and gone with the jar.
struct PrivateDir {
  std::string inside;
  mode_t mode = 0700;
};

// What was made on the host for this layout, removed with it.
class Leftovers {
 public:
  Leftovers() = default;
  Leftovers(Leftovers&&) noexcept = default;
  Leftovers& operator=(Leftovers&&) noexcept = default;
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;
  ~Leftovers();
  void add_folder(Fd parent, std::string name) {
    folders_.push_back({std::move(parent), std::move(name)});
  }
  void add_scratch(std::string path) { scratch_.push_back(std::move(path)); }
  // A file in a folder that others may hold by one as well, and its folders, which go with the
  // last of them.
  struct Entry {
    Fd parent;  // a guest may have put something else at its path
    std::string name;
  };
  void add_hold(Entry file, std::vector<Entry> folders) {
    holds_.push_back({std::move(file), std::move(folders)});
  }

 private:
  struct Hold {
    Entry file;
    std::vector<Entry> folders;
  };
  std::vector<Entry> folders_;  // removed if still empty, the last one first
  std::vector<Hold> holds_;
  std::vector<std::string> scratch_;  // removed with all that is in them
};

struct Layout {
  bool whole_root = false;  // the host's root is the guest's, less what is hidden
  bool root_writable = false;
  bool own_dev = true;
  bool lost_exceptions = false;  // hide or protect was asked for, and there is no view
  std::string shown_own;         // without a view: a folder of belljar's own that the guest sees
  std::vector<Place> places;     // parents before children
  std::vector<Link> links;
  std::vector<Text> texts;
  std::vector<PrivateDir> private_dirs;
  std::vector<std::string> folders;  // inside: empty, there only to be named
  std::string workdir;               // inside
  std::string start;                 // inside: where the guest starts; empty: in the workdir
  std::string home, tmp, cache;      // inside
  std::vector<std::string> warnings;
  Leftovers leftovers;
};

// Whether `path` is `tree` or lies below it.
inline bool is_below(std::string_view path, std::string_view tree) {
  if (tree == "/") return true;
  return path.starts_with(tree) && (path.size() == tree.size() || path[tree.size()] == '/');
}

}  // namespace belljar
