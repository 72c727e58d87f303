#include "layers/seatbelt_text.h"

namespace belljar::seatbelt {
namespace {

using Kind = Filter::Kind;

std::string_view word(Kind kind) {
  switch (kind) {
    case Kind::literal:
      return "literal";
    case Kind::subpath:
      return "subpath";
    case Kind::regex:
      return "regex";
    case Kind::global_name:
      return "global-name";
    case Kind::sysctl:
      return "sysctl-name";
    case Kind::sysctl_prefix:
      return "sysctl-name-prefix";
    case Kind::ipc_regex:
      return "ipc-posix-name-regex";
    case Kind::target:
      return "target";
    case Kind::remote_ip:
      return "remote ip";
    case Kind::local_ip:
      return "local ip";
    case Kind::own_terminal:
      return "regex";
  }
  return "?";
}

std::string text_of(const Filter& filter) {
  const bool symbol = filter.kind == Kind::target;
  // A regular expression is written with a #, and then a backslash is its own. Ours have none.
  const bool own = filter.kind == Kind::own_terminal;
  const bool regex = own || filter.kind == Kind::regex || filter.kind == Kind::ipc_regex;
  const std::string text = "(" + std::string(word(filter.kind)) + " " + (regex ? "#" : "") +
                           (symbol ? filter.value : quoted(filter.value)) + ")";
  // Who opens /dev/ptmx in a sandbox is handed this for its other end.
  return own ? "(require-all " + text + " (extension \"com.apple.sandbox.pty\"))" : text;
}

// Bytes of other scripts are their own. What the quoting of SBPL, or of its expressions, may
// take for something else is not.
bool is_plain(char c) {
  return static_cast<unsigned char>(c) >= 0x80 || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("/_-=@%,:~ ").find(c) != std::string_view::npos;
}

// Where the set of a `[…]` at `at` ends; npos: it is no set.
std::size_t end_of_set(std::string_view glob, std::size_t at) {
  std::size_t i = at + 1;
  if (i < glob.size() && (glob[i] == '!' || glob[i] == '^')) ++i;
  if (i < glob.size() && glob[i] == ']') ++i;
  return glob.find(']', i);
}

}  // namespace

// Scheme's reader knows two special characters in a string, and takes all others as they are,
// a line's end too.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  out.push_back('"');
  return out;
}

std::string regex_of_glob(std::string_view glob) {
  // One character may be up to four bytes, and the matcher may count either.
  constexpr std::string_view kOne = "[^/][^/]?[^/]?[^/]?";
  std::string out = "^";
  for (std::size_t i = 0; i < glob.size(); ++i) {
    const char c = glob[i];
    if (glob.substr(i).starts_with("**/")) {
      out += "(.*/)?";
      i += 2;
    } else if (glob.substr(i) == "**") {
      out += ".*";
      ++i;
    } else if (c == '*') {
      out += "[^/]*";
    } else if (c == '?') {
      out += kOne;
    } else if (c == '[' && end_of_set(glob, i) != glob.npos) {
      out += kOne;
      i = end_of_set(glob, i);
    } else if (is_plain(c)) {
      out.push_back(c);
    } else if (std::string_view(".+(){}|$").find(c) != std::string_view::npos) {
      out.append("[").append(1, c).append("]");
    } else {
      out += "[^/]";
    }
  }
  return out + "(/.*)?$";
}

std::string render(const std::vector<Rule>& rules) {
  std::string text = "(version 1)\n(deny default)\n";
  for (const Rule& rule : rules) {
    if (!rule.why.empty()) text.append("; ").append(rule.why).append("\n");
    text += rule.verdict == Verdict::allow ? "(allow" : "(deny";
    for (const std::string& operation : rule.operations) text.append(" ").append(operation);
    for (const Filter& filter : rule.filters) text.append("\n  ").append(text_of(filter));
    text += ")\n";
  }
  return text;
}

}  // namespace belljar::seatbelt
