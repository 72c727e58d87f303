// A Python environment of its own (PEP 405): its interpreter is a symlink, and what is installed
// in it is found beside that. So all of it must be shown, not what the link leads to.
#pragma once

#include <string>

namespace belljar {

// The nearest one that a path lies in; empty: none.
std::string venv_above(const std::string& path);

}  // namespace belljar
