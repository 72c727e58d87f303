#include "layers/layout.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <ranges>

namespace belljar {

Leftovers::~Leftovers() {
  for (const Folder& folder : std::views::reverse(folders_))  // ENOTEMPTY: the guest used it
    ::unlinkat(folder.parent.get(), folder.name.c_str(), AT_REMOVEDIR);
  std::error_code ignored;  // what cannot be removed stays; there is nobody to tell
  // Does not follow symlinks, so what a guest planted leads nowhere.
  for (const std::string& path : scratch_) std::filesystem::remove_all(path, ignored);
}

}  // namespace belljar
