// Files: what a call left in the workdir.
//
// The guest makes the files, so nothing here trusts one: folders and files are opened
// from their parent's descriptor and never through a symlink; what is no regular file is
// passed over, and opening cannot block; numbers and sizes are bounded. Neither is the engine
// a way for the guest to read what is not shown to it (sight.h).
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "belljar/session.h"
#include "session/sight.h"

namespace belljar::session {

// How a file was when it was looked at.
struct Version {
  ino_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t changed_ns = 0;  // ctime, which a guest cannot set
  bool operator==(const Version&) const = default;
};

struct Snapshot {
  std::map<std::string, Version> files;  // by their paths below the workdir
  bool more = false;                     // there are more than it takes
};

inline constexpr std::size_t kMaxFiles = 20'000;

// Leaves out names that begin with a dot, caches and folders of dependencies and builds.
// `most`: of names that are looked at.
Snapshot take_snapshot(int workdir_fd, const Sight& sight, std::size_t most = kMaxFiles);

struct FileLimits {
  std::size_t one;    // bytes of one file whose content is returned
  std::size_t total;  // of all of them
};

// Those that are new or not as they were, with content, by name. `wanted` are returned
// however they are.
struct Changes {
  std::vector<SessionFile> files;
  std::vector<std::string> missing;  // of those that were wanted
  bool more = false;                 // than are listed
};

// How long what has changed is: much is not read on the loop.
std::uint64_t changed_bytes(const Snapshot& before, const Snapshot& after);

Changes changed_files(int workdir_fd, const Sight& sight, const Snapshot& before,
                      const Snapshot& after, const std::vector<std::string>& wanted,
                      const FileLimits& limits);

}  // namespace belljar::session
