// Workspace: a session's files, under the paths that its guest sees, for tools that work outside.
//
// The guest makes the tree and changes it while we look, so no path of it is ever given to the
// kernel to resolve. A walk opens one name at a time in a folder that it holds
// (openat2, RESOLVE_BENEATH and no symlinks), reads symlinks as text, and follows them as the
// guest would: in its own paths, from root to root. So there is nothing between check and use
// that a rename could change: where a walk arrives is in a root, or it does not arrive.
//
// A root inside another (a protected folder, skills) is taken from its own descriptor, by whatever
// way it is reached: by its path, or, since a guest can move the folder that a mount is in, by
// device and inode.
//
// Only regular files are opened, and only after they are known to be that: no FIFO, socket or
// device is ever waited for. Needs openat2 (Linux 5.6) and /proc.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "tools/beneath.h"
#include "tools/failure.h"
#include "tools/path_rules.h"

namespace belljar::tools {

// With whose rights the guest uses a root, when belljar runs as root. An ordinary user's guest has
// that user's own, whatever is said here.
enum class Rights : std::uint8_t {
  ours,
  owners,     // of the root's top: it is shown to the guest as its own
  everybodys  // it is nobody in particular there (system folders)
};

struct Root {
  std::string inside;   // as the guest sees it
  std::string outside;  // on the host
  bool writable = false;
  bool hidden = false;  // not shown at all, inside another root
  Rights rights = Rights::ours;
  bool operator==(const Root&) const = default;
};

// A root whose descriptor is held.
struct HeldRoot {
  Root root;
  Fd fd;  // O_PATH
  dev_t device = 0;
  ino_t inode = 0;
  std::optional<Ids> guest;  // as whom it is used; none: as who we are
};

// What the guest sees besides the roots.
struct Elsewhere {
  std::string home;  // what `~` means to its shell; empty: a `~` is a name like any other
  // Folders that its programs see and the tools do not: its own /tmp, /proc and the like.
  std::vector<std::string> unreached;
};

// Where a path leads.
struct Place {
  std::string inside;  // absolute, symlinks followed
  const HeldRoot* root = nullptr;
  Fd folder;         // that holds it, O_PATH; none if it is the root itself
  std::string name;  // in that folder
  Fd self;           // O_PATH; none if nothing is there
  struct stat st{};  // of self
};

// A regular file to be read.
struct OpenFile {
  Fd fd;
  struct stat st{};
  std::string inside;
};

inline constexpr std::size_t kMaxPath = 4096;

inline bool is_at_home(std::string_view path) { return path == "~" || path.starts_with("~/"); }
// What a guest that is in `cwd` means by a path: `~` is expanded as a shell does.
std::string whole_path(std::string_view path, const std::string& cwd, const std::string& home);
// The same without `.` and `..`; symlinks are not looked at.
std::string absolute_path(std::string_view path, const std::string& cwd, const std::string& home);

class Workspace {
 public:
  // Roots may lie in one another, inside: the longest that matches is meant. `cwd_inside` is
  // where relative paths begin.
  static Result<Workspace> open(std::vector<Root> roots, const std::string& cwd_inside,
                                PathRules rules = {}, Elsewhere elsewhere = {});

  enum class Missing : std::uint8_t {
    is_an_error,
    is_a_place,    // the last name need not be there
    makes_parents  // and folders on the way to it are made
  };
  // `tool` is for the rules and for the right to write: the name of who asks.
  Result<Place> find(std::string_view tool, std::string_view path,
                     Missing missing = Missing::is_an_error) const;
  // Without asking the rules: where a search begins, which then asks them for each file.
  Result<Place> find_any(std::string_view path, Missing missing = Missing::is_an_error) const {
    return walk("", path, missing);
  }
  Result<OpenFile> open_file(std::string_view tool, std::string_view path) const;
  Result<OpenFile> open_file(const Place& place) const;

  bool allows(std::string_view tool, std::string_view inside) const;
  std::string absolute(std::string_view path) const {
    return absolute_path(path, cwd_, elsewhere_.home);
  }
  std::string whole(std::string_view path) const { return whole_path(path, cwd_, elsewhere_.home); }
  const std::string& cwd() const { return cwd_; }
  const std::vector<HeldRoot>& roots() const { return *roots_; }
  const HeldRoot* root_at(std::string_view inside) const;
  // The root that this is the top of; the strictest where there are several.
  const HeldRoot* root_of(const struct stat& st) const;
  // For messages: what can be reached at all.
  std::string places() const;
  // Whether what runs in the session may see what the tools do not reach.
  bool is_unreached(std::string_view inside) const;

 private:
  Workspace() = default;
  Result<Place> walk(std::string_view tool, std::string_view path, Missing missing) const;

  std::shared_ptr<const std::vector<HeldRoot>> roots_;  // places point into it
  std::string cwd_;
  PathRules rules_;
  Elsewhere elsewhere_;
};

// refuse_errno for what lies in a root: who is not let in is told whether that can be changed.
std::unexpected<Failure> refuse_in(const HeldRoot& root, std::string what, int err);

}  // namespace belljar::tools
