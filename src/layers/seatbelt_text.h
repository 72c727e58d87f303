// The text of a Seatbelt profile (SBPL, a dialect of Scheme): rules as values, and how they
// are written down.
//
// Defends against: a path that ends its own string and goes on as a rule. Whatever bytes a
// path holds, they stay between two quotes. Does not do: comments that hold anything of a
// policy's; they are ours, fixed, and on lines of their own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace belljar::seatbelt {

// What a rule is about. A path is the real one, as the kernel names a file.
struct Filter {
  enum class Kind {
    literal,        // this path
    subpath,        // this path and all below it
    regex,          // a path that matches
    global_name,    // a Mach service
    sysctl,         // a name of sysctl
    sysctl_prefix,  // names that begin so
    ipc_regex,      // a name of POSIX semaphores and shared memory
    target,         // which processes: self, same-sandbox
    remote_ip,      // "localhost:*", "*:*"
    local_ip,
    own_terminal,  // a path that matches, of a terminal that the guest made itself
  };
  Kind kind = Kind::subpath;
  std::string value;
  bool operator==(const Filter&) const = default;
};

enum class Verdict { allow, deny };

// The last rule that matches decides.
struct Rule {
  Verdict verdict = Verdict::allow;
  std::vector<std::string> operations;
  std::vector<Filter> filters;  // any of them; none: always
  std::string_view why;         // a fixed text of ours
};

// A string of SBPL that reads back as exactly `text`, which must hold no NUL.
std::string quoted(std::string_view text);

// A regular expression that matches at least what the glob (as of `expand_glob`) matches, and
// all below that: where SBPL's own quoting is in doubt, a wildcard stands for the character. So
// it is good for denying only.
std::string regex_of_glob(std::string_view glob);

// The whole profile: everything is denied, then the rules in order.
std::string render(const std::vector<Rule>& rules);

}  // namespace belljar::seatbelt
