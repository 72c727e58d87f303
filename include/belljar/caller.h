// Caller: what of the surroundings of the program that uses belljar a sandbox
// depends on. A plain value, so that a server can say it once, or leave it out.
#pragma once

#include <string>
#include <vector>

namespace belljar {

struct Caller {
  std::string home;                      // absolute; a guest's private home stands at this path
  std::string cwd;                       // relative paths are relative to it
  std::vector<std::string> environment;  // NAME=value, of which a policy passes some
  std::vector<std::string> own = {};     // paths that no guest sees, besides belljar's usual ones
};

// As this process is now. It reads the environment, so do not call it while another
// thread changes that.
Caller this_process();

}  // namespace belljar
