#include "layers/layout.h"

#include <unistd.h>

#include <filesystem>
#include <ranges>

namespace belljar {

Leftovers::~Leftovers() {
  for (const std::string& path : std::views::reverse(folders_))
    ::rmdir(path.c_str());  // ENOTEMPTY: the guest used it
  std::error_code ignored;  // what cannot be removed stays; there is nobody to tell
  // Does not follow symlinks, so what a guest planted leads nowhere.
  for (const std::string& path : scratch_) std::filesystem::remove_all(path, ignored);
}

}  // namespace belljar
