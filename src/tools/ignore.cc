#include "tools/ignore.h"

#include <algorithm>

namespace belljar::tools {

std::optional<Ignore::Line> Ignore::parse_line(std::string_view text) {
  if (text.ends_with('\r')) text.remove_suffix(1);
  // Spaces at the end do not count unless a backslash is before them.
  while (text.ends_with(' ') && !text.ends_with("\\ ")) text.remove_suffix(1);
  if (text.empty() || text.starts_with('#')) return std::nullopt;
  Line line;
  if (text.starts_with('!')) {
    line.ignores = false;
    text.remove_prefix(1);
  }
  if (text.ends_with('/')) {
    line.folders_only = true;
    text.remove_suffix(1);
  }
  line.anchored = text.find('/') != text.npos;
  if (text.starts_with('/')) text.remove_prefix(1);
  if (text.empty() || text.starts_with('/')) return std::nullopt;
  Result<Pattern> pattern = Pattern::parse(text, Pattern::Braces::literal);
  if (!pattern) return std::nullopt;
  line.pattern = std::move(*pattern);
  return line;
}

Ignore Ignore::parse(std::string_view text) {
  Ignore ignore;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (!text.empty() && ignore.lines_.size() < kMaxIgnoreLines) {
    const std::size_t end = text.find('\n');
    if (std::optional<Line> line = parse_line(text.substr(0, end)))
      ignore.lines_.push_back(std::move(*line));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return ignore;
}

std::optional<bool> Ignore::ignores(std::string_view below, Entry entry) const {
  const std::string_view name = below.substr(below.rfind('/') + 1);  // npos + 1 is 0
  for (auto line = lines_.rbegin(); line != lines_.rend(); ++line) {
    if (line->folders_only && entry != Entry::folder) continue;
    if (line->pattern.matches(line->anchored ? below : name)) return line->ignores;
  }
  return std::nullopt;
}

bool is_ignored(const IgnoreChain* chain, std::string_view path, Entry entry) {
  for (; chain != nullptr; chain = chain->above.get())
    if (const std::optional<bool> says = chain->ignore.ignores(path.substr(chain->depth), entry))
      return *says;
  return false;
}

}  // namespace belljar::tools
