#include "tools/workspace.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/printable.h"
#include "tools/beneath.h"
#include "tools/walk.h"

namespace belljar::tools {
namespace {

// As the kernel would if there were no symlinks.
std::string lexical(std::string_view path) {
  std::vector<std::string> parts;
  for (std::string& part : parts_of(path)) {
    if (part != "..")
      parts.push_back(std::move(part));
    else if (!parts.empty())
      parts.pop_back();
  }
  return joined(parts);
}

Result<HeldRoot> hold(Root root) {
  if (!root.inside.starts_with('/') || !root.outside.starts_with('/'))
    return refuse(Kind::bad_argument, "a root must be an absolute path: " + root.inside);
  root.inside = lexical(root.inside);
  HeldRoot held;
  held.fd = TRY(open_path(root.outside.c_str(), O_PATH));
  struct stat st{};
  if (::fstat(held.fd.get(), &st) < 0) return refuse_errno("look at " + root.outside, errno);
  held.device = st.st_dev;
  held.inode = st.st_ino;
  if (::geteuid() == 0 && root.rights == Rights::owners)
    held.guest = Ids{.uid = st.st_uid, .gid = st.st_gid};
  if (::geteuid() == 0 && root.rights == Rights::everybodys) held.guest = kNobody;
  held.root = std::move(root);
  return held;
}

}  // namespace

Result<Workspace> Workspace::open(std::vector<Root> roots, const std::string& cwd_inside,
                                  PathRules rules, Elsewhere elsewhere) {
  if (!cwd_inside.starts_with('/'))
    return refuse(Kind::bad_argument, "the working folder must be an absolute path");
  std::vector<HeldRoot> held;
  for (Root& root : roots) held.push_back(TRY(hold(std::move(root))));
  Workspace workspace;
  workspace.roots_ = std::make_shared<const std::vector<HeldRoot>>(std::move(held));
  workspace.cwd_ = lexical(cwd_inside);
  workspace.rules_ = std::move(rules);
  workspace.elsewhere_ = std::move(elsewhere);
  return workspace;
}

std::string whole_path(std::string_view path, const std::string& cwd, const std::string& home) {
  if (path.starts_with('/')) return std::string(path);
  if (is_at_home(path) && !home.empty()) return home + std::string(path.substr(1));
  return cwd + "/" + std::string(path);
}

std::string absolute_path(std::string_view path, const std::string& cwd, const std::string& home) {
  return lexical(whole_path(path, cwd, home));
}

bool Workspace::is_unreached(std::string_view inside) const {
  return std::ranges::any_of(elsewhere_.unreached, [&](const std::string& folder) {
    return folder == "/" || inside == folder || inside.starts_with(folder + "/");
  });
}

const HeldRoot* Workspace::root_at(std::string_view inside) const {
  for (const HeldRoot& held : *roots_)
    if (held.root.inside == inside) return &held;
  return nullptr;
}

const HeldRoot* Workspace::root_of(const struct stat& st) const {
  const HeldRoot* found = nullptr;
  auto strictness = [](const HeldRoot& held) {
    return held.root.hidden ? 2 : held.root.writable ? 0 : 1;
  };
  for (const HeldRoot& held : *roots_)
    if (held.inode == st.st_ino && held.device == st.st_dev &&
        (found == nullptr || strictness(held) > strictness(*found)))
      found = &held;
  return found;
}

std::string Workspace::places() const {
  std::string writable;
  std::string readable;
  for (const HeldRoot& held : *roots_) {
    if (held.root.hidden) continue;
    std::string& list = held.root.writable ? writable : readable;
    list.append(list.empty() ? "" : ", ").append(printable(held.root.inside));
  }
  if (readable.empty()) return writable;
  return writable + (writable.empty() ? "" : "; ") + "read-only: " + readable;
}

bool Workspace::allows(std::string_view tool, std::string_view inside) const {
  return rules_.allows(tool, inside);
}

Result<Place> Workspace::walk(std::string_view tool, std::string_view path, Missing missing) const {
  if (path.empty()) return refuse(Kind::bad_argument, "the path is empty", "name a file");
  if (path.find('\0') != path.npos)
    return refuse(Kind::bad_argument, "the path holds a zero byte", "name a file");
  if (path.size() > kMaxPath) return refuse_errno("find a path of that length", ENAMETOOLONG);
  return Walk(*this, tool, path, missing).to(whole(path));
}

Result<Place> Workspace::find(std::string_view tool, std::string_view path, Missing missing) const {
  auto denied = [&] {
    return refuse(Kind::denied_by_rule,
                  printable(path) + " may not be used with " + std::string(tool),
                  "a rule of the operator's says so; do without it");
  };
  // By what it says, so that nothing is learnt about what is there, and by where it leads.
  if (!rules_.allows(tool, absolute(path))) return denied();
  Place place = TRY(walk(tool, path, missing));
  if (!rules_.allows(tool, place.inside)) return denied();
  return place;
}

Result<OpenFile> Workspace::open_file(std::string_view tool, std::string_view path) const {
  return open_file(TRY(find(tool, path)));
}

Result<OpenFile> Workspace::open_file(const Place& place) const {
  const std::string what = printable(place.inside);
  if (S_ISDIR(place.st.st_mode)) return refuse_errno("open " + what, EISDIR);
  if (!S_ISREG(place.st.st_mode))
    return refuse(Kind::not_a_file, what + " is a FIFO, a socket or a device",
                  "only regular files can be opened");
  const AsGuest as_guest(place.root->guest);
  if (as_guest.failed()) return refuse_errno("open " + what, EPERM);
  OpenFile file{
      .fd = open_again(place.self.get(), O_RDONLY), .st = place.st, .inside = place.inside};
  if (!file.fd) return refuse_in(*place.root, "open " + what, errno);
  return file;
}

std::unexpected<Failure> refuse_in(const HeldRoot& root, std::string what, int err) {
  const bool is_the_guests = root.root.writable && root.root.rights != Rights::everybodys;
  if ((err != EACCES && err != EPERM) || is_the_guests) return refuse_errno(std::move(what), err);
  return refuse(Kind::no_permission, std::move(what),
                "its mode does not let this session in, with the shell neither; do without it",
                err);
}

}  // namespace belljar::tools
