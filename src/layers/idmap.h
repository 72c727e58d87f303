// idmap: show a tree of the host under another owner, without changing it.
//
// When root launches a jar, the guest's uid is not the owner of the workspace;
// an idmapped mount makes the owner's files appear as the guest's, so that it can
// write them and git does not see "dubious ownership". Files of anybody else in
// the tree appear as nobody's. Needs Linux 5.12, root, and a file system that
// allows it (ext4, xfs, btrfs, tmpfs from 6.3, overlayfs from 5.19).
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace belljar::idmap {

// A user namespace needs a process to be born in; this one waits to be killed.
class Holder {
 public:
  static Result<Holder> start();
  Holder(Holder&& other) noexcept
      : stack_(std::move(other.stack_)), pid_(std::exchange(other.pid_, -1)) {}
  Holder& operator=(Holder&&) = delete;
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder();
  std::string proc(const char* file) const { return "/proc/" + std::to_string(pid_) + file; }

 private:
  using Stack = std::array<std::byte, 16384>;
  Holder() : stack_(std::make_unique_for_overwrite<Stack>()) {}
  std::unique_ptr<Stack> stack_;
  int pid_ = -1;
};

// The maps of one jar: one user namespace per owner met. Ending their holders
// takes time that the jar need not wait for: let it go first.
class Maps {
 public:
  explicit Maps(uid_t jar_uid) : jar_uid_(jar_uid) {}

  // `tree_fd` is a detached mount of `path`.
  Status show(int tree_fd, const std::string& path);

 private:
  struct Map {
    uid_t uid;
    gid_t gid;
    Holder holder;
    Fd user_namespace;
  };
  Result<int> namespace_for(uid_t uid, gid_t gid);

  uid_t jar_uid_;
  std::vector<Map> maps_;
};

}  // namespace belljar::idmap
