// Removing what a guest made.
#pragma once

#include <functional>
#include <string>

namespace belljar {

// Everything in the folder and the folder itself, whatever modes the guest gave it, however
// deep it made it, and nothing that a symlink leads to. There may be so much of it that somebody
// wants to give up: that is asked before each part.
void remove_tree(const std::string& path, const std::function<bool()>& gives_up = {});

}  // namespace belljar
