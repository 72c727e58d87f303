// A host that is only supposed: what would be planned there can be said anywhere.
#pragma once

#include "plan/plan.h"

namespace belljar {

// It can do everything.
inline Host supposed_host(std::string cgroup_parent) {
  return {.identity = {},
          .view = {},
          .net = {},
          .landlock = {.abi = 7},
          .seccomp = {.filters = true},
          .cgroup = {.parent = std::move(cgroup_parent), .why_not = {}},
          .measured = true};
}

}  // namespace belljar
