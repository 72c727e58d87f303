#include "plan/venv.h"

#include <unistd.h>

namespace belljar {

std::string venv_above(const std::string& path) {
  std::string folder = path;
  for (std::size_t slash = folder.rfind('/'); slash != folder.npos && slash > 0;
       slash = folder.rfind('/')) {
    folder.resize(slash);
    if (::access((folder + "/pyvenv.cfg").c_str(), F_OK) == 0) return folder;
  }
  return {};
}

}  // namespace belljar
