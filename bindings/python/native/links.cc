#include "links.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"
#include "base/file.h"

namespace belljar::python {
namespace {

Result<Fd> open_folder(const std::string& path) {
  return open_path(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

// Through no symlink: in a workdir that stays, a guest may have been before.
Fd step(const Fd& folder, const std::string& name) {
  return Fd(::openat(folder.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t slash = std::min(name.find('/', at), name.size());
    const std::string part = name.substr(at, slash - at);
    if (!part.empty() && part != ".") parts.push_back(part);
    at = slash + 1;
  }
  return parts;
}

}  // namespace

Result<Links> Links::make(const std::string& workdir,
                          const std::vector<std::pair<std::string, std::string>>& wanted) {
  Links links;
  links.workdir_ = workdir;
  for (const auto& [name, target] : wanted) {
    const std::vector<std::string> parts = parts_of(name);
    if (parts.empty() || std::ranges::find(parts, "..") != parts.end()) continue;
    Fd folder = TRY(open_folder(workdir));
    std::string so_far;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      so_far += (i > 0 ? "/" : "") + parts[i];
      const bool made = ::mkdirat(folder.get(), parts[i].c_str(), 0755) == 0;
      if (!made && errno != EEXIST) return fail("make " + so_far + " in the workdir", errno);
      if (made) links.folders_.push_back(so_far);
      folder = step(folder, parts[i]);
      if (!folder) return fail("open " + so_far + " in the workdir", errno);
    }
    if (::symlinkat(target.c_str(), folder.get(), parts.back().c_str()) == 0)
      links.made_.push_back(name);
    else if (errno != EEXIST)
      return fail("make " + name + " in the workdir", errno);
  }
  return links;
}

void Links::remove() const {
  // What cannot be removed is not ours any more.
  auto remove_one = [&](const std::string& name, int flags) {
    Result<Fd> folder = open_folder(workdir_);
    if (!folder) return;
    const std::vector<std::string> parts = parts_of(name);
    for (std::size_t i = 0; i + 1 < parts.size() && *folder; ++i) *folder = step(*folder, parts[i]);
    if (!*folder) return;
    struct stat st{};
    const char* last = parts.back().c_str();
    if (::fstatat(folder->get(), last, &st, AT_SYMLINK_NOFOLLOW) < 0) return;
    if (flags == 0 && !S_ISLNK(st.st_mode)) return;
    (void)::unlinkat(folder->get(), last, flags);
  };
  for (const std::string& name : made_) remove_one(name, 0);
  for (std::size_t i = folders_.size(); i > 0; --i) remove_one(folders_[i - 1], AT_REMOVEDIR);
}

}  // namespace belljar::python
