// Where this machine's toolchains are: the variables that name their locations,
// the folders in the home that package managers use, and every PATH entry. Files
// that hold tokens inside those folders are named too, so that they are hidden.
#pragma once

#include <string>
#include <vector>

namespace belljar {

struct Caller;
class GuestTrees;
class Tracer;

// Folders of a home that hold keys, and never a toolchain.
inline constexpr const char* kKeyStores[] = {".ssh",           ".aws",  ".gnupg",
                                             ".config/gcloud", ".kube", ".docker"};

struct Toolchains {
  std::vector<std::string> folders;
  std::vector<std::string> secrets;  // canonical
};

// What a guest may have planted is no toolchain.
Toolchains find_toolchains(const Caller& caller, Tracer& tracer, const GuestTrees& guest_trees);

}  // namespace belljar
