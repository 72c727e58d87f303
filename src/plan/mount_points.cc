#include "plan/mount_points.h"

#include <fcntl.h>
#include <unistd.h>

namespace belljar {
namespace {

// Something to be mounted.
struct Mount {
  std::string_view inside;
  const Place* place;  // or null: a private folder
  bool directory;
};

// The tree that a mount lands in. Null: one of our own, where all can be made.
const Place* tree_below(const Layout& layout, const Mount& mount) {
  const Place* nearest = nullptr;
  for (const Place& place : layout.places)
    if (&place != mount.place && place.inside != mount.inside && place.access != Access::hide &&
        is_below(mount.inside, place.inside) &&
        (nearest == nullptr || place.inside.size() > nearest->inside.size()))
      nearest = &place;
  for (const PrivateDir& dir : layout.private_dirs)
    if (dir.inside != mount.inside && is_below(mount.inside, dir.inside) &&
        (nearest == nullptr || dir.inside.size() > nearest->inside.size()))
      return nullptr;
  return nearest;
}

bool may_make_in(const Place& tree) { return tree.from == "home" || tree.from == "tmp"; }

std::unexpected<Error> cannot(const Mount& mount, const std::string& on, int err) {
  const std::string what =
      mount.place != nullptr ? mount.place->path : std::string("a private folder");
  return fail(what + " cannot be shown at " + std::string(mount.inside) + ": " + on +
                  (mount.directory ? " is no folder to mount it on" : " is no file to mount it on"),
              err, "make it, or move away what is there");
}

// Below `tree`, without following a symlink: a guest may have been there before.
Status make_in(const Place& tree, const Mount& mount) {
  const std::string on = tree.path + std::string(mount.inside.substr(tree.inside.size()));
  std::string_view rest = mount.inside.substr(tree.inside == "/" ? 1 : tree.inside.size() + 1);
  Fd folder(::fcntl(tree.fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!folder) return fail("open " + tree.path, errno);
  for (;;) {
    const std::string name(rest.substr(0, rest.find('/')));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    const bool last = rest.empty();
    const bool made = last && !mount.directory
                          ? ::mknodat(folder.get(), name.c_str(), S_IFREG | 0666, 0) == 0
                          : ::mkdirat(folder.get(), name.c_str(), 0777) == 0;
    if (!made && errno != EEXIST) return cannot(mount, on, errno);
    struct stat st{};
    if (::fstatat(folder.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) < 0)
      return cannot(mount, on, errno);
    if (last && S_ISDIR(st.st_mode) == mount.directory && !S_ISLNK(st.st_mode)) return {};
    if (last || !S_ISDIR(st.st_mode)) return cannot(mount, on, 0);
    folder =
        Fd(::openat(folder.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder) return cannot(mount, on, errno);
  }
}

Status prepare(const Layout& layout, const Mount& mount, MissingMountPoints missing) {
  const Place* tree = tree_below(layout, mount);
  if (tree == nullptr) return {};
  const std::string on = tree->path + std::string(mount.inside.substr(tree->inside.size()));
  // A part of the tree that is hidden or protected in it.
  if (mount.place != nullptr && mount.place->path == on) return {};
  if (may_make_in(*tree) && tree->inside != tree->path)
    return missing == MissingMountPoints::make ? make_in(*tree, mount) : Status();
  struct stat st{};
  if (::lstat(on.c_str(), &st) < 0) return cannot(mount, on, errno);
  return {};
}

// Of two trees at one path the guest would see the later one only.
Status refuse_same_path(const Layout& layout, const Place& place) {
  for (const Place& other : layout.places)
    if (&other != &place && other.inside == place.inside && other.path != place.path &&
        (other.from == "home" || other.from == "tmp"))
      return fail("the " + place.from + " " + place.path + " and --" + other.from + "=" +
                      other.path + " would both be at " + place.inside,
                  0, "leave one of them out");
  return {};
}

}  // namespace

Status make_mount_points(const Layout& layout, MissingMountPoints missing) {
  for (const Place& place : layout.places) {
    TRY(refuse_same_path(layout, place));
    TRY(prepare(layout, {place.inside, &place, place.is_dir()}, missing));
  }
  for (const PrivateDir& dir : layout.private_dirs)
    TRY(prepare(layout, {dir.inside, nullptr, true}, missing));
  return {};
}

}  // namespace belljar
