// Removing what a guest made.
#pragma once

#include <string>

namespace belljar {

// Everything in the folder and the folder itself, whatever modes the guest gave it, however
// deep it made it, and nothing that a symlink leads to.
void remove_tree(const std::string& path);

}  // namespace belljar
