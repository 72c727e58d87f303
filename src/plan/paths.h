// Paths on the host, looked at once: symlinks followed and remembered, without trusting
// what a guest may have left behind.
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
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

// The names between its slashes, without `.`.
std::vector<std::string> names_of_path(std::string_view path);

// What was traced, as O_PATH. A guest may put a symlink anywhere on the way between
// looking and opening, so none is followed, and it must be what was looked at.
Result<Fd> open_traced(const std::string& path, const struct stat& st);

}  // namespace belljar
