// Running a program and timing it, with as little of our own as possible.
#pragma once

#include <string>
#include <vector>

#include "samples.h"

namespace bench {

struct Program {
  std::vector<std::string> arguments;  // the first is looked up in PATH
  std::vector<int> data_fds{};         // passed on, from their beginning
};

struct Ran {
  Nanoseconds took = 0;
  int status = -1;  // a wait status; -1: it could not be started
  bool ok() const { return status == 0; }
};

// Standard input and output are /dev/null.
int start(const Program& program);
Ran run(const Program& program);

}  // namespace bench
