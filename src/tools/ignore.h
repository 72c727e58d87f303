// Ignore: what a .gitignore says, by git's rules: nested files, `!` takes back, a slash anchors,
// a slash at the end means folders only, the last line that matches decides.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/pattern.h"

namespace belljar::tools {

inline constexpr std::size_t kMaxIgnoreFile = std::size_t{1} << 20;  // bytes
inline constexpr std::size_t kMaxIgnoreLines = 10'000;

enum class Entry : std::uint8_t { file, folder };

// One file's lines. A line that cannot be read means nothing, as with git.
class Ignore {
 public:
  static Ignore parse(std::string_view text);

  bool empty() const { return lines_.empty(); }
  // `below`: the path from the folder of the .gitignore. Nothing: no line matches.
  std::optional<bool> ignores(std::string_view below, Entry entry) const;

 private:
  struct Line {
    Pattern pattern;
    bool ignores = true;
    bool folders_only = false;
    bool anchored = false;  // else the last name alone is matched
  };
  static std::optional<Line> parse_line(std::string_view text);

  std::vector<Line> lines_;
};

// The files from the top down to a folder. Each folder has one, which shares those above.
struct IgnoreChain {
  std::shared_ptr<const IgnoreChain> above;
  Ignore ignore;
  std::size_t depth = 0;  // how many bytes of a path lead to its folder
};

// `path` is relative to the folder at which the chain began.
bool is_ignored(const IgnoreChain* chain, std::string_view path, Entry entry);

}  // namespace belljar::tools
