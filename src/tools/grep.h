// grep: the lines of files that match a regular expression.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "tools/needle.h"
#include "tools/tree.h"
#include "tools/workspace.h"

namespace belljar::tools {

inline constexpr std::size_t kMaxMatches = 100;
inline constexpr std::size_t kMaxContext = 20;
inline constexpr std::size_t kMaxShown = 500;  // characters of a line

struct GrepCall {
  std::string pattern;
  std::optional<std::string> path;     // a folder or one file; else the working folder
  std::optional<std::string> include;  // `*.cc` anywhere, `src/**/*.cc` from the path on
  std::size_t context = 0;             // lines before and after
  Case letters = Case::matters;
  std::size_t most = kMaxMatches;
  std::stop_token stop = {};  // ends it early
  TreeLimits limits = {};
};

struct GrepMatch {
  std::string path;  // inside, UTF-8
  std::uint64_t line = 0;
  std::string text;
  std::vector<std::string> before, after;
  bool operator==(const GrepMatch&) const = default;
};

struct GrepResult {
  std::string text;                // "path:12: line", context as "path-11- line"
  std::vector<GrepMatch> matches;  // by path and line
  std::uint64_t files = 0;         // that were looked at
  bool truncated = false;          // there are more, or not all was looked at
};

Result<GrepResult> grep(const Workspace& workspace, const GrepCall& call);

}  // namespace belljar::tools
