#include "launcher/granted_sockets.h"

namespace belljar::launcher {

Result<broker::OwnSockets> granted_sockets(const Layout& layout) {
  std::vector<Fd> folders;
  std::vector<struct stat> by_name;
  for (const Place& place : layout.places) {
    if (S_ISSOCK(place.st.st_mode)) by_name.push_back(place.st);
    // Folders of the system that everybody may write, such as /dev/shm, are not the guest's own.
    if (place.access != Access::write || !place.is_dir() || place.from == "system") continue;
    Fd folder(::fcntl(place.fd.get(), F_DUPFD_CLOEXEC, 0));
    if (!folder)
      return fail("keep " + place.path, errno, "raise the limit on open files (ulimit -n)");
    folders.push_back(std::move(folder));
  }
  return broker::OwnSockets(std::move(folders), std::move(by_name));
}

}  // namespace belljar::launcher
