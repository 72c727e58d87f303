#include "tools/path_rules.h"

namespace belljar::tools {
namespace {

// `path` itself, and every folder on the way to it.
bool matches_it_or_a_folder_above(const Pattern& pattern, std::string_view path) {
  for (std::size_t end = path.find('/'); end != path.npos; end = path.find('/', end + 1))
    if (pattern.matches(path.substr(0, end))) return true;
  return pattern.matches(path);
}

}  // namespace

Result<PathRules> PathRules::make(const std::vector<PathRule>& rules) {
  PathRules made;
  for (const PathRule& rule : rules) {
    if (rule.pattern.empty())
      return refuse(Kind::bad_pattern, "a path rule without a pattern", "`*` means everything");
    if (rule.tool.empty())
      return refuse(Kind::bad_argument, "a path rule without a tool", "`*` means every tool");
    const std::string pattern = rule.pattern.starts_with('/') ? rule.pattern : "**/" + rule.pattern;
    made.rules_.push_back({rule.says, rule.tool, TRY(Pattern::parse(pattern))});
  }
  return made;
}

bool PathRules::allows(std::string_view tool, std::string_view path) const {
  if (path.starts_with('/')) path.remove_prefix(1);
  for (auto rule = rules_.rbegin(); rule != rules_.rend(); ++rule)
    if ((rule->tool == "*" || rule->tool == tool) &&
        matches_it_or_a_folder_above(rule->pattern, path))
      return rule->says == PathRule::Says::allow;
  return true;
}

}  // namespace belljar::tools
