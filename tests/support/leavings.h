// What a launch could leave in its caller: descriptors and children.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iterator>

namespace belljar::testing {

inline std::ptrdiff_t open_descriptors() {
  std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all)) - 1;  // less the one that reads the folder
}

// Neither running nor unreaped.
inline bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 || errno != ECHILD;
}

}  // namespace belljar::testing
