// Where this machine's toolchains are: the variables that name their locations,
// the folders in the home that package managers use, and every PATH entry. Files
// that hold tokens inside those folders are named too, so that they are hidden.
#pragma once

#include <string>
#include <vector>

#include "plan/toolchain_names.h"

namespace belljar {

struct Caller;
class GuestTrees;
class Tracer;

struct Toolchains {
  std::vector<std::string> folders;
  std::vector<std::string> secrets;  // canonical
};

// What a guest may have planted is no toolchain.
Toolchains find_toolchains(const Caller& caller, Tracer& tracer, const GuestTrees& guest_trees);

}  // namespace belljar
