// The keys of a policy: one table from which come the flags, the TOML and JSON
// readers, their help, the reference documentation, the JSON Schema and shell
// completions. A key is added here and in Settings, nowhere else.
#pragma once

#include <span>
#include <string_view>
#include <variant>

#include "policy/settings.h"

namespace belljar {

// Where a value comes from, so that what is relative to it can be made absolute.
struct Origin {
  std::string folder;  // relative paths start here
  std::string home;    // `~`
};

enum class Kind {
  flag,         // true or false
  choice,       // one of `choices`
  name,         // a word
  count,        // a number, or "unlimited"
  duration,     // seconds, or 500ms, 2m, 1h, or "unlimited"
  path,         // made absolute
  tmp,          // "private" or a path
  paths,        // repeatable
  globs,        // repeatable, paths in which * ? [ ] ** match
  hosts,        // repeatable, HOST[:PORT[-PORT]] or @GROUP
  ports,        // repeatable, HOSTPORT:PORT
  names,        // repeatable; variables, `*` matches any run
  assignments,  // repeatable, NAME=value
  mounts,       // repeatable, SOURCE:DESTINATION
  promises,     // repeatable
};

using Target = std::variant<bool Settings::*, std::optional<std::string> Settings::*,
                            std::vector<std::string> Settings::*, std::optional<Limit> Settings::*>;

struct Key {
  std::string_view name;  // in TOML, JSON and Python
  std::string_view flag;  // on the command line, without the dashes
  char letter;            // a short flag, or 0
  Kind kind;
  Target target;
  bool widens;             // an untrusted project may not set it
  std::string_view value;  // what the help calls the value
  std::string_view help;   // one sentence
  std::span<const std::string_view> choices = {};
  std::uint64_t least = 1;  // of a count
};

std::span<const Key> keys();
const Key* find_key(std::string_view name);
const Key* find_flag(std::string_view flag);
// The valid name that `wrong` was probably meant to be; empty if none is near.
std::string_view nearest(std::string_view wrong, std::span<const std::string_view> names);

// A count or a duration, in milliseconds. `name` is what errors call it.
Result<Limit> parse_limit(std::string_view text, std::string_view name, Kind kind,
                          std::uint64_t least = 1);

// `~`, and what is relative to where it was written.
std::string absolute_path(std::string_view text, const Origin& origin);

// Adds one value, as text, to the settings.
Status set(Settings& settings, const Key& key, std::string_view text, const Origin& origin);

}  // namespace belljar
