// The filters that exist: which lists, for which machine, with what left out.
// Shared by the program that compiles them when belljar is built and the layer
// that chooses one when it runs.
#pragma once

#include <linux/filter.h>

#include <span>
#include <string>

#include "belljar/policy.h"

namespace belljar::seccomp {

enum class Arch { x86_64, aarch64 };

struct Variant {
  Arch arch = Arch::x86_64;
  Syscalls list = Syscalls::deny_list;
  bool network = true;  // false: no sockets but AF_UNIX
  bool memfd = true;    // false: no memfd_create, no shared anonymous memory
  bool joins = false;   // true: setns is allowed. Only with all of the above as they are here
  bool operator==(const Variant&) const = default;
};

struct Compiled {
  Variant variant;
  std::span<const sock_filter> program;
};

// All of them, for every architecture: the tests evaluate the foreign ones too.
std::span<const Compiled> compiled();

inline std::string name(const Variant& variant) {
  std::string out = variant.arch == Arch::x86_64 ? "x86_64" : "aarch64";
  out += variant.list == Syscalls::deny_list ? "-deny_list" : "-allow_list";
  if (!variant.network) out += "-no_network";
  if (!variant.memfd) out += "-no_memfd";
  if (variant.joins) out += "-joins";
  return out;
}

}  // namespace belljar::seccomp
