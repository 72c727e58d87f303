// Path rules: which of a session's files a tool may touch, as the operator wrote it. They narrow
// what the session shows and can add nothing to it: what is in no root stays denied.
//
// They bind the file tools. A guest that may run a shell reads whatever the jar shows it; what a
// shell must not read is hidden by the policy.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/pattern.h"

namespace belljar::tools {

struct PathRule {
  enum class Says : std::uint8_t { allow, deny };
  Says says = Says::deny;
  // `/workspace/keys` is that place; without a slash at the front it may be anywhere: `*.pem`.
  // Who names a folder means all that is in it.
  std::string pattern;
  std::string tool = "*";  // or one tool's name: "write"
  bool operator==(const PathRule&) const = default;
};

class PathRules {
 public:
  PathRules() = default;  // all that the roots show
  static Result<PathRules> make(const std::vector<PathRule>& rules);

  // The last rule that matches decides; if none does, it is allowed. `path`: absolute, inside.
  bool allows(std::string_view tool, std::string_view path) const;
  bool empty() const { return rules_.empty(); }

 private:
  struct Compiled {
    PathRule::Says says;
    std::string tool;
    Pattern pattern;
  };
  std::vector<Compiled> rules_;
};

}  // namespace belljar::tools
