// doctor --verify PROFILE: the checks to make before putting a profile to use,
// really attempted inside a jar.
#pragma once

#include <string>

#include "base/result.h"

namespace belljar::cli {

enum class As { text, json };

// Prints a line per check. 0: all hold, 1: one failed.
Result<int> verify_profile(const std::string& profile, As as);

}  // namespace belljar::cli
