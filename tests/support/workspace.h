// Two folders and a workspace on one of them: what the file tools may reach, and what not.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "support/folder.h"
#include "tools/workspace.h"

namespace belljar::testing {

inline void set_mode(const std::filesystem::path& path, mode_t mode) {
  if (::chmod(path.c_str(), mode) < 0)
    throw std::system_error(errno, std::generic_category(), path.string());
}
inline mode_t mode_of(const std::filesystem::path& path) {
  return static_cast<mode_t>(std::filesystem::status(path).permissions());
}

class WorkspaceFolders {
 public:
  WorkspaceFolders() { outside.write("secret", "the secret\n"); }

  tools::Workspace open(std::vector<tools::Root> more = {}, tools::PathRules rules = {}) const {
    more.push_back({.inside = "/workspace", .outside = inside.path(), .writable = true});
    return *tools::Workspace::open(std::move(more), "/workspace", std::move(rules));
  }
  std::filesystem::path operator/(const std::string& name) const {
    return std::filesystem::path(inside.path()) / name;
  }
  void link(const std::string& name, const std::string& target) const {
    std::filesystem::create_symlink(target, *this / name);
  }
  void folder(const std::string& name) const { std::filesystem::create_directories(*this / name); }

  Folder inside;
  Folder outside;
};

}  // namespace belljar::testing
