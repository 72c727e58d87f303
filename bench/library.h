// Launching through the library, from a process that is already running.
#pragma once

#include <string>

#include "samples.h"

namespace bench {

enum class Way {
  fresh_plan,  // belljar::run
  one_plan,    // the plan was made before: start a jar with the command, wait, end it
  ready_jar,   // the jar too: take it from a pool, spawn, wait
};

// A process of its own that launches once whenever it is asked to.
class Launcher {
 public:
  // `resident_mb`: how much memory the process has touched.
  Launcher(std::string profile, Way way, std::size_t resident_mb);
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;
  ~Launcher();

  // What one launch took, or -1.
  Nanoseconds launch();

 private:
  int pid_ = -1;
  int socket_ = -1;
};

}  // namespace bench
