// Where the host shows the same thing twice: a folder that is mounted at a second path
// (mount --bind, a file system mounted twice). A jar's trees have what is mounted in them,
// so what is hidden at one path must be hidden at the other as well.
//
// Does not know: file systems made of others (overlay, FUSE), whose files are not the same.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace belljar {

class MountTable {
 public:
  static MountTable read();  // of this process; empty where there is no /proc
  static MountTable parse(std::string_view mountinfo);

  // The other paths at which `path`, or a part of it, is. `path` is canonical.
  std::vector<std::string> other_paths(const std::string& path) const;

 private:
  struct Mount {
    std::string device;
    std::string root;   // in its file system
    std::string point;  // where that is
  };
  const Mount* mount_of(std::string_view path) const;
  std::vector<Mount> mounts_;  // what covers another comes later
};

}  // namespace belljar
