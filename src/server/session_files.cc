#include "server/session_files.h"

#include <unistd.h>

namespace belljar::server {

tools::Result<tools::Workspace> workspace_of(const session::SessionView& view) {
  const bool is_root = ::geteuid() == 0;
  std::vector<tools::Root> roots;
  for (const session::SessionRoot& root : view.roots)
    roots.push_back({.inside = root.inside,
                     .outside = root.outside,
                     .writable = root.writable,
                     .hidden = root.hidden,
                     .as_others = is_root && !root.owned});
  return tools::Workspace::open(std::move(roots), view.workdir);
}

}  // namespace belljar::server
