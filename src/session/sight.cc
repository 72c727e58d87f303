#include "session/sight.h"

#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>

#include "base/syscall.h"

namespace belljar::session {
namespace {

constexpr int kToLook = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

// Where the kernel says that it is; its symlinks are resolved.
std::string path_of(int fd) {
  std::array<char, PATH_MAX> path{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t n = ::readlink(link.c_str(), path.data(), path.size());
  return n > 0 ? std::string(path.data(), static_cast<std::size_t>(n)) : std::string();
}

// The rest of `path` below `tree`; empty if it is not below it.
std::string rest_below(const std::string& path, const std::string& tree) {
  if (tree.empty() || path == tree || !is_below(path, tree)) return {};
  return path.substr(tree == "/" ? 1 : tree.size() + 1);
}

const Place* place_of(const Layout& layout, const struct stat& st) {
  auto shows_it = [&](const Place& place) {
    return place.access != Access::hide && place.st.st_dev == st.st_dev &&
           place.st.st_ino == st.st_ino;
  };
  const auto found = std::ranges::find_if(layout.places, shows_it);
  return found == layout.places.end() ? nullptr : &*found;
}

}  // namespace

Sight::Sight(const Layout& layout, int workdir_fd, std::optional<uid_t> jar_uid) {
  struct stat workdir{};
  if (::fstat(workdir_fd, &workdir) < 0) return;  // it is open, so this cannot fail
  const Place* shown = place_of(layout, workdir);
  const bool owned = shown != nullptr && shown->owned;
  if (jar_uid && owned) guest_ = {.uid = workdir.st_uid, .gid = workdir.st_gid};
  if (jar_uid && !owned) guest_ = {.uid = *jar_uid, .gid = *jar_uid};

  const std::string outside = path_of(workdir_fd);
  auto cover = [&](const std::string& path, const std::string& tree) {
    if (const std::string rest = rest_below(path, tree); !rest.empty()) covered_.insert(rest);
  };
  for (const Place& place : layout.places) {
    const std::string rest = rest_below(place.inside, layout.workdir);
    const bool elsewhere = !rest.empty() && place.path != outside + "/" + rest;
    const bool others = jar_uid && (place.owned != owned || place.st.st_uid != workdir.st_uid ||
                                    place.st.st_gid != workdir.st_gid);
    if (place.access == Access::hide) hidden_.emplace(place.st.st_dev, place.st.st_ino);
    if (place.access == Access::hide || elsewhere || others) cover(place.inside, layout.workdir);
    if (place.access == Access::hide) cover(place.path, outside);
  }
  // What was made for the guest stands before what is there on the host.
  for (const PrivateDir& dir : layout.private_dirs) cover(dir.inside, layout.workdir);
  for (const Text& text : layout.texts) cover(text.inside, layout.workdir);
}

bool Sight::shows(const std::string& path, const struct stat& st) const {
  if (hidden_.contains({st.st_dev, st.st_ino})) return false;
  if (covered_.empty()) return true;
  for (std::size_t end = path.find('/'); end != path.npos; end = path.find('/', end + 1))
    if (covered_.contains(path.substr(0, end))) return false;
  return !covered_.contains(path);
}

// As the kernel decides: by the first of owner, group and others that the guest is.
bool Sight::may(int fd, const struct stat& st, mode_t what) const {
  if (!guest_) return true;  // it was opened with the rights that the guest has
  if (st.st_uid == guest_->uid) return (st.st_mode & what << 6) != 0;
  if (::fgetxattr(fd, "system.posix_acl_access", nullptr, 0) > 0) return false;
  if (st.st_gid == guest_->gid) return (st.st_mode & what << 3) != 0;
  return (st.st_mode & what) != 0;
}

// Folder by folder, so that each is looked at and none can be exchanged in between.
Fd open_seen(int workdir_fd, const Sight& sight, const std::string& name) {
  if (name.empty() || name.starts_with('/') || name.find('\0') != name.npos ||
      name.size() >= PATH_MAX)
    return {};
  Fd at;
  std::string path;
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    const bool is_last = end == name.size();
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..") return {};
    path += (path.empty() ? "" : "/") + part;
    const int flags = kToLook | (is_last ? 0 : O_DIRECTORY);
    Fd next(::openat(at ? at.get() : workdir_fd, part.c_str(), flags | O_CLOEXEC));
    struct stat st{};
    if (!next || ::fstat(next.get(), &st) < 0 || !sight.shows(path, st)) return {};
    if (is_last ? !sight.may_read(next.get(), st) : !sight.may_enter(next.get(), st)) return {};
    at = std::move(next);
  }
  return at;
}

}  // namespace belljar::session
