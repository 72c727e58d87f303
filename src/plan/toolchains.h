// Where this machine's toolchains are: the variables that name their locations,
// the folders in the home that package managers use, and every PATH entry. Files
// that hold tokens inside those folders are named too, so that they are hidden.
#pragma once

#include <string>
#include <vector>

namespace belljar {

struct Caller;
class Tracer;

struct Toolchains {
  std::vector<std::string> folders;
  std::vector<std::string> secrets;
};

Toolchains find_toolchains(const Caller& caller, Tracer& tracer);

}  // namespace belljar
