// Braces: `src/{a,b{1,2}}.cc` is three patterns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/failure.h"

namespace belljar::tools {

// `most`: how many there may be; what is between `[` and `]` is left alone.
Result<std::vector<std::string>> expand_braces(std::string_view text, std::size_t most);

}  // namespace belljar::tools
