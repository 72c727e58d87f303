#include "layers/layout.h"

#include <fcntl.h>
#include <unistd.h>

#include <ranges>

#include "base/remove_tree.h"

namespace belljar {

Leftovers::~Leftovers() {
  for (const Hold& hold : holds_) {
    ::unlinkat(hold.file.parent.get(), hold.file.name.c_str(), 0);
    for (const Entry& folder : std::views::reverse(hold.folders))  // ENOTEMPTY: somebody uses it
      ::unlinkat(folder.parent.get(), folder.name.c_str(), AT_REMOVEDIR);
  }
  for (const Entry& folder : std::views::reverse(folders_))  // ENOTEMPTY: the guest used it
    ::unlinkat(folder.parent.get(), folder.name.c_str(), AT_REMOVEDIR);
  for (const std::string& path : scratch_) remove_tree(path);
}

}  // namespace belljar
