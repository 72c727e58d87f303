#include "plan/mount_table.h"

#include <sstream>

#include "base/file.h"
#include "layers/layout.h"

namespace belljar {
namespace {

// The kernel writes space, tab, newline and backslash as \ooo.
std::string unescape(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 3 >= text.size()) {
      plain.push_back(text[i]);
      continue;
    }
    plain.push_back(
        static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + text[i + 3] - '0'));
    i += 3;
  }
  return plain;
}

// `path` without `tree` above it; both absolute.
std::string_view below(std::string_view path, std::string_view tree) {
  return path.substr(tree == "/" ? 0 : tree.size());
}

std::string join(std::string_view tree, std::string_view rest) {
  if (tree == "/") return rest.empty() || rest == "/" ? "/" : std::string(rest);
  return std::string(tree) + std::string(rest == "/" ? "" : rest);
}

}  // namespace

MountTable MountTable::read() { return parse(read_text("/proc/self/mountinfo").value_or("")); }

MountTable MountTable::parse(std::string_view mountinfo) {
  MountTable table;
  std::istringstream lines{std::string(mountinfo)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, point;
    if (words >> id >> parent >> device >> root >> point)
      table.mounts_.push_back({device, unescape(root), unescape(point)});
  }
  return table;
}

const MountTable::Mount* MountTable::mount_of(std::string_view path) const {
  const Mount* nearest = nullptr;
  for (const Mount& mount : mounts_)
    if (is_below(path, mount.point) &&
        (nearest == nullptr || mount.point.size() >= nearest->point.size()))
      nearest = &mount;
  return nearest;
}

std::vector<std::string> MountTable::other_paths(const std::string& path) const {
  std::vector<std::string> paths;
  const Mount* here = mount_of(path);
  if (here == nullptr) return paths;
  const std::string in_device = join(here->root, below(path, here->point));
  for (const Mount& mount : mounts_) {
    if (mount.device != here->device) continue;
    std::string other;
    if (is_below(in_device, mount.root))
      other = join(mount.point, below(in_device, mount.root));
    else if (is_below(mount.root, in_device))
      other = mount.point;  // shows a part of it
    if (!other.empty() && !is_below(other, path) && mount_of(other) == &mount)
      paths.push_back(std::move(other));
  }
  return paths;
}

}  // namespace belljar
