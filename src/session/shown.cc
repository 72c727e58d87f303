#include "session/shown.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"

namespace belljar::session {
namespace {

bool is_in_workdir(const Credential& credential) {
  return !credential.destination.starts_with('/');
}

Status make_folder_in(int workdir_fd, std::string_view path) {
  Fd folder(::fcntl(workdir_fd, F_DUPFD_CLOEXEC, 0));
  if (!folder) return fail("open the workdir", errno);
  const std::string whole(path);
  while (!path.empty()) {
    const std::string name(path.substr(0, path.find('/')));
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    if (name.empty() || name == "." || name == "..") return fail(whole + " is no place to show at");
    if (::mkdirat(folder.get(), name.c_str(), 0755) < 0 && errno != EEXIST)
      return fail("make " + whole, errno);
    folder =
        Fd(::openat(folder.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder) return fail("open " + whole, errno, "move away what is there");
  }
  return {};
}

}  // namespace

Status make_shown_folders(int workdir_fd, const Files& files) {
  for (const Credential& credential : files.credentials)
    if (is_in_workdir(credential)) TRY(make_folder_in(workdir_fd, credential.destination));
  return {};
}

void forget_shown(Files& files) { std::erase_if(files.credentials, is_in_workdir); }

}  // namespace belljar::session
