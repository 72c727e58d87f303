#include "policy/permissions.h"

#include <algorithm>

namespace belljar {

std::string_view name(Permission permission) {
  switch (permission) {
    case Permission::automatic:
      return "auto";
    case Permission::ask:
      return "ask";
    case Permission::deny:
      return "deny";
  }
  return {};
}

std::optional<Permission> parse_permission(std::string_view text) {
  if (text == "auto" || text == "allow") return Permission::automatic;
  if (text == "ask") return Permission::ask;
  if (text == "deny") return Permission::deny;
  return std::nullopt;
}

// Linear in both but for the last star, to which it goes back.
bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = pattern.npos;
  std::size_t after_star = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = t;
      if (p == pattern.size()) return true;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++after_star;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool is_compound_command(std::string_view command) {
  return command.find_first_of(";&|`$()<>{}\n\r\\") != command.npos;
}

Permission Permissions::decide(std::string_view tool, const PermissionSubject& subject) const {
  const auto found = tools.find(tool);
  if (found == tools.end()) return otherwise;
  std::optional<Permission> decided;
  for (const PermissionRule& rule : found->second) {
    const bool vague = subject.compound && rule.pattern != "*";
    if (vague && rule.permission == Permission::automatic) continue;
    auto is_about = [&](const std::string& text) { return matches_pattern(rule.pattern, text); };
    if (is_about(subject.text) || std::ranges::any_of(subject.also, is_about))
      decided = rule.permission;
  }
  return decided.value_or(std::max(otherwise, Permission::ask));
}

std::span<const std::string_view> tool_names() {
  static constexpr std::string_view kNames[] = {
      "python",        "shell",        "read",          "write",         "edit",
      "glob",          "grep",         "session_list",  "session_close", "session_reset",
      "process_start", "process_poll", "process_write", "process_signal"};
  return kNames;
}

Permission strictest(std::span<const Permissions> all, std::string_view tool,
                     std::span<const PermissionSubject> subjects) {
  Permission found = Permission::automatic;
  for (const Permissions& permissions : all)
    for (const PermissionSubject& subject : subjects)
      found = std::max(found, permissions.decide(tool, subject));
  return found;
}

Permissions overlay(Permissions under, const Permissions& over) {
  under.otherwise = over.otherwise;
  for (const auto& [tool, rules] : over.tools) {
    std::vector<PermissionRule>& all = under.tools[tool];
    all.insert(all.end(), rules.begin(), rules.end());
  }
  return under;
}

}  // namespace belljar
