// Paths on the host, looked at once: symlinks followed and remembered, globs
// expanded, without trusting what a guest may have left behind.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "layers/layout.h"

namespace belljar {

// A path with every symlink on the way resolved, and those symlinks, so that the
// name a person used works inside as well.
struct Traced {
  std::string path;         // canonical
  std::vector<Link> links;  // each at its canonical place
  struct stat st{};
};

// Follows paths, and looks at no path twice: those of a plan have most of their
// folders in common, and with a dozen toolchains that is 300 system calls less.
class Tracer {
 public:
  // ENOENT and the like are errors. `.` and `..` are resolved as the kernel would.
  Result<Traced> trace(std::string_view path);

 private:
  struct Seen {
    int err = 0;
    struct stat st{};
    std::string link;  // what it says, if it is one
  };
  const Seen& look(const std::string& path);
  std::unordered_map<std::string, Seen> seen_;
};

// The same, for one path.
Result<Traced> trace(std::string_view path);

// The existing paths that match. `*`, `?` and `[…]` stay within a name, `**` is
// any number of folders. Symlinks are not followed.
std::vector<std::string> expand_glob(std::string_view pattern);

// Other names of a file inside a tree (hard links), found by looking. `complete`
// is false when the tree was too large to look at all of it.
struct OtherNames {
  std::vector<std::string> paths;
  bool complete = true;
};
OtherNames other_names(const struct stat& file, const std::string& tree);

// The files of a tree that have more than one name.
struct LinkedFile {
  std::string path;
  struct stat st{};
};
std::vector<LinkedFile> linked_files(const std::string& tree);

}  // namespace belljar
