// env: the guest's environment, made from nothing.
//
// Defends against: tokens in the caller's variables. What the policy does not
// pass is not there; what depends on the jar (HOME, TMPDIR, caches) is set to
// where it is inside.
#pragma once

#include <string>
#include <vector>

#include "belljar/policy.h"

namespace belljar::env {

// Where things are inside.
struct Inside {
  std::string home;
  std::string tmp;
  std::string cache;  // may be empty
};

std::vector<std::string> resolve(const Policy& policy, const std::vector<std::string>& callers,
                                 const Inside& inside);

// `pattern` with `*` for any run of characters.
bool matches(std::string_view name, std::string_view pattern);

}  // namespace belljar::env
