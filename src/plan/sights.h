// Where the guest sees something of the host.
#pragma once

#include <string>
#include <vector>

#include "layers/layout.h"

namespace belljar {

struct Sight {
  std::string inside;
  std::string tree;  // inside: that of the place that shows it
  bool writable;
  bool owned;
};

// All paths at which the guest sees `path`, which has no symlinks in it and need not exist. A
// tree can be shown more than once (as the home, as /tmp, at its own path while the workdir
// has another), and a part of it can be covered by something else.
std::vector<Sight> sights(const Layout& layout, const std::string& path);

}  // namespace belljar
