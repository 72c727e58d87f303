// Sight: what of the workdir its guest sees and may read. Files are returned by the engine,
// which opens them on the host: without the guest's mounts, and as root with rights that the
// guest has not. What the guest could not have read itself is not returned.
//
// It is strict rather than exact: what lies in a part of the workdir that is shown by a mount
// of its own and under another owner, or is read only by an ACL, counts as not seen.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/fd.h"
#include "layers/layout.h"

namespace belljar::session {

class Sight {
 public:
  // All of it, with the engine's own rights.
  Sight() = default;
  // `jar_uid`: the guest's, where it is not the engine's.
  Sight(const Layout& layout, int workdir_fd, std::optional<uid_t> jar_uid);

  // `path` is below the workdir, with neither `.` nor `..` in it.
  bool shows(const std::string& path, const struct stat& st) const;
  // What is open as `fd` may be read, a folder be listed; or a folder be gone through.
  bool may_read(int fd, const struct stat& st) const { return may(fd, st, 04); }
  bool may_enter(int fd, const struct stat& st) const { return may(fd, st, 01); }

 private:
  struct Owner {
    uid_t uid;
    gid_t gid;
  };
  bool may(int fd, const struct stat& st, mode_t what) const;

  std::set<std::string> covered_;             // by path, with all that is below
  std::set<std::pair<dev_t, ino_t>> hidden_;  // under whatever name
  std::optional<Owner> guest_;                // as who the workdir's files know it
};

// The file `name` below the workdir, if the guest may read it; through no symlink.
Fd open_seen(int workdir_fd, const Sight& sight, const std::string& name);

}  // namespace belljar::session
