#include "server/session_files.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <memory>
#include <optional>

#include "base/utf8.h"
#include "tools/beneath.h"

namespace belljar::server {
namespace {

namespace json = boost::json;

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

std::string_view kind_of(mode_t mode) {
  if (S_ISREG(mode)) return "file";
  if (S_ISDIR(mode)) return "folder";
  if (S_ISLNK(mode)) return "link";
  return "other";
}

// As the guest sees it: what is hidden from it is not there, and what is shown in its place is
// what counts.
std::optional<json::object> entry_of(const tools::Workspace& files, const tools::Place& folder,
                                     int folder_fd, const std::string& name) {
  json::object entry;
  entry["name"] = is_utf8(name) ? name : repair_utf8(name);
  struct stat found{};
  if (::fstatat(folder_fd, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) < 0) found = {};
  const std::string above = folder.inside == "/" ? "" : folder.inside;
  const tools::HeldRoot* root = files.root_at(above + "/" + name);
  if (root == nullptr) root = files.root_of(found);
  if (root != nullptr && root->root.hidden) return std::nullopt;
  if (root != nullptr && ::fstat(root->fd.get(), &found) < 0) found = {};
  entry["kind"] = kind_of(found.st_mode);
  entry["size"] = found.st_size;
  entry["modified_ms"] = found.st_mtim.tv_sec * 1000 + found.st_mtim.tv_nsec / 1'000'000;
  return entry;
}

template <class Wanted>
tools::Result<tools::Workspace> open_roots(const session::SessionView& view, Wanted&& wanted,
                                           tools::Elsewhere elsewhere = {}) {
  using tools::Rights;
  const bool is_root = ::geteuid() == 0;
  auto rights_in = [&](const session::SessionRoot& root) {
    if (!is_root) return Rights::ours;
    return root.owned ? Rights::owners : Rights::everybodys;
  };
  std::vector<tools::Root> roots;
  // The host's / is not all of it the guest's: /proc, /dev and what is private are its own.
  for (const session::SessionRoot& root : view.roots)
    if (root.inside != "/" && wanted(root))
      roots.push_back({.inside = root.inside,
                       .outside = root.outside,
                       .writable = root.writable,
                       .hidden = root.hidden,
                       .rights = rights_in(root)});
  return tools::Workspace::open(std::move(roots), view.workdir, {}, std::move(elsewhere));
}

}  // namespace

tools::Result<tools::Workspace> workspace_of(const session::SessionView& view) {
  return open_roots(view, [](const session::SessionRoot&) { return true; },
                    {.home = view.home, .unreached = view.unreached});
}

tools::Result<tools::Workspace> files_of(const session::SessionView& view) {
  return open_roots(view, [&](const session::SessionRoot& root) {
    return root.inside == view.workdir || root.inside.starts_with(view.workdir + "/");
  });
}

tools::Result<json::object> list_folder(const tools::Workspace& files, const std::string& path) {
  const tools::Place place = TRY(files.find("list", path.empty() ? "." : path));
  if (!S_ISDIR(place.st.st_mode))
    return tools::refuse(tools::Kind::not_a_folder, path + " is no folder",
                         "GET it under /files/ to download it");
  const tools::AsGuest as_guest(place.root->guest);
  if (as_guest.failed()) return tools::refuse_errno("open " + path, EPERM);
  Fd again = tools::open_again(place.self.get(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (!again) return tools::refuse_in(*place.root, "open " + path, errno);
  const std::unique_ptr<DIR, CloseFolder> folder(::fdopendir(again.get()));
  if (folder == nullptr) return tools::refuse_errno("open " + path, errno);
  const int folder_fd = again.release();  // the DIR owns it now
  std::vector<std::string> names;
  bool more = false;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string name(static_cast<const char*>(entry->d_name));
    if (name == "." || name == "..") continue;
    more = names.size() >= kMaxListed;
    if (more) break;
    names.push_back(name);
  }
  std::ranges::sort(names);
  json::array list;
  for (const std::string& name : names)
    if (std::optional<json::object> entry = entry_of(files, place, folder_fd, name))
      list.push_back(std::move(*entry));
  json::object answer;
  answer["path"] = place.inside;
  answer["files"] = std::move(list);
  answer["more"] = more;
  return answer;
}

tools::Status remove_entry(const tools::Workspace& files, const std::string& path) {
  const tools::Place place = TRY(files.find("delete", path));
  if (!place.folder || place.root == nullptr || !place.root->root.writable)
    return tools::refuse(tools::Kind::read_only, path + " cannot be removed",
                         "it is shown read-only, or is the workdir itself");
  const tools::AsGuest as_guest(place.root->guest);
  if (as_guest.failed()) return tools::refuse_errno("remove " + path, EPERM);
  // A mount that is in the way answers EBUSY.
  const int flags = S_ISDIR(place.st.st_mode) ? AT_REMOVEDIR : 0;
  if (::unlinkat(place.folder.get(), place.name.c_str(), flags) < 0)
    return tools::refuse_in(*place.root, "remove " + path, errno);
  return {};
}

}  // namespace belljar::server
