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

// The same names with nothing looked at: all the places where a toolchain might be. Folders of
// PATH are apart, since for X/bin all of X is meant where it has a lib.
struct ToolchainNames {
  std::vector<std::string> folders;
  std::vector<std::string> programs;
  std::vector<std::string> secrets;
};
ToolchainNames toolchain_names(const Caller& caller);

}  // namespace belljar
