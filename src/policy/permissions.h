// Permissions: which tools a model may use by itself, which only after a person said yes,
// and which not at all. They are asked before a tool runs. What the tool can then reach is
// the sandbox's to say, and nothing here can loosen that.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace belljar {

enum class Permission { automatic, ask, deny };  // the stricter is the greater

std::string_view name(Permission permission);  // auto, ask, deny
// Also `allow`, as other tools' agent files say it.
std::optional<Permission> parse_permission(std::string_view text);

// What permissions can be about: the names of all tools.
std::span<const std::string_view> tool_names();

struct PermissionRule {
  std::string pattern;  // `*` stands for any text, `?` for one character
  Permission permission = Permission::ask;
  bool operator==(const PermissionRule&) const = default;
};

// What a call is about: a command, a path. Patterns are matched against it.
struct PermissionSubject {
  std::string text;
  // A shell command that may be several, or a program with variables of its own: `git log; rm
  // -rf .` must not pass for one that begins with git, and with another PATH git is another
  // program. A pattern other than `*` then allows nothing.
  bool compound = false;
  // The same by other names. A rule is about it if it is about any.
  std::vector<std::string> also{};
};

struct Permissions {
  Permission otherwise = Permission::automatic;  // for tools that are not named
  // The last rule that matches decides. Where none does it is `otherwise`, and at least ask.
  std::map<std::string, std::vector<PermissionRule>, std::less<>> tools;
  bool operator==(const Permissions&) const = default;

  Permission decide(std::string_view tool, const PermissionSubject& subject) const;
};

// The strictest that any of these says about any of the subjects.
Permission strictest(std::span<const Permissions> all, std::string_view tool,
                     std::span<const PermissionSubject> subjects);

// A text with more than one command in it, or with one inside another, as far as a look at
// its characters tells. Advisory: a shell can be talked into anything.
bool is_compound_command(std::string_view command);

bool matches_pattern(std::string_view pattern, std::string_view text);

// `over` is asked first: its rules come last, and its `otherwise` counts.
Permissions overlay(Permissions under, const Permissions& over);

}  // namespace belljar
