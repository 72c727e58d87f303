// glob: the files whose paths match a pattern, newest first.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "tools/tree.h"
#include "tools/workspace.h"

namespace belljar::tools {

inline constexpr std::size_t kMaxGlobbed = 1'000;

struct GlobCall {
  std::string pattern;
  std::optional<std::string> path;  // the folder from which it counts; else the working folder
  std::stop_token stop = {};        // ends it early
  TreeLimits limits = {};
};

struct GlobResult {
  std::string text;                // a path a line
  std::vector<std::string> paths;  // inside, UTF-8
  std::uint64_t total = 0;         // that were found
  bool truncated = false;          // there are more, or not all was looked at
};

// Where an absolute pattern is looked for, whatever `path` is; empty: the pattern is none.
std::string folder_in(const std::string& pattern);

Result<GlobResult> glob(const Workspace& workspace, const GlobCall& call);

}  // namespace belljar::tools
