// try_in_child: find out what the host allows by doing it, in a process whose
// end undoes it, and with a time limit, since a probe may hang where a launch
// would.
#pragma once

#include <cerrno>
#include <functional>
#include <string>

namespace belljar {

struct Tried {
  int err = 0;  // 0: it worked
  bool timed_out = false;
  bool killed = false;

  bool ok() const { return err == 0 && !timed_out && !killed; }
  std::string reason() const;
};

// `attempt` returns 0 or an errno. It runs in a fork of this process.
Tried try_in_child(const std::function<int()>& attempt);

}  // namespace belljar
