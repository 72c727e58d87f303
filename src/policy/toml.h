// belljar.toml, read. A file may come from a stranger's repository: whatever it
// holds, reading it ends in a Config or in an Error that says where. What such a
// file may ask for is not decided here but in load.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/keys.h"
#include "policy/net_rule.h"
#include "policy/permissions.h"
#include "policy/profiles.h"
#include "policy/server_keys.h"
#include "policy/session_keys.h"

namespace belljar {

struct Position {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  bool operator==(const Position&) const = default;
};

// The policy keys of one table, and where each stands.
struct Section {
  Settings settings;
  std::map<std::string, Position, std::less<>> positions;
  bool operator==(const Section&) const = default;
};

// [profiles.NAME]
struct ProfileDefinition {
  std::string extends = kDefaultProfile;
  Section section;
  Position position;
  bool operator==(const ProfileDefinition&) const = default;
};
using ProfileDefinitions = std::map<std::string, ProfileDefinition, std::less<>>;

// [tasks.NAME]
struct Task {
  std::string description;
  std::vector<std::string> run;      // each for /bin/sh -c, one after the other
  std::vector<std::string> depends;  // names of tasks
  std::string dir;                   // absolute; its paths start there
  Section section;
  Position position;
  bool operator==(const Task&) const = default;
};
using Tasks = std::map<std::string, Task, std::less<>>;

// A group of [net_groups].
struct NetGroupDefinition {
  std::vector<std::string> rules;
  Position position;
  bool operator==(const NetGroupDefinition&) const = default;
};
using NetGroupDefinitions = std::map<std::string, NetGroupDefinition, std::less<>>;

// [session]
struct SessionSection {
  // As they were written, so that they can be laid over others.
  std::map<std::string, std::vector<std::string>, std::less<>> values;
  Position position;
  bool operator==(const SessionSection&) const = default;
};

// [permissions]
struct PermissionsSection {
  std::optional<Permissions> permissions;
  Position position;
  bool operator==(const PermissionsSection&) const = default;
};

// [server]
struct ServerSection {
  // As they were written, so that they can be laid over others.
  std::map<std::string, std::vector<std::string>, std::less<>> values;
  Position position;
  bool operator==(const ServerSection&) const = default;
};

struct Config {
  std::string file;    // as messages name it
  std::string folder;  // absolute; its paths start there
  Section sandbox;
  ProfileDefinitions profiles;
  Tasks tasks;
  NetGroupDefinitions net_groups;
  SessionSection session;
  PermissionsSection permissions;
  ServerSection server;
  bool operator==(const Config&) const = default;

  Error error(Position position, std::string_view what, const std::string& hint = {}) const;
};

struct ConfigSource {
  enum class Owner { project, person };  // tasks belong to a project
  std::string file;                      // as messages name it
  Origin origin;
  Owner owner = Owner::project;
  std::vector<std::string> known_profiles = {};  // defined elsewhere, beside the built-in ones
  NetGroups known_groups = {};                   // defined elsewhere
};

inline constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;

// What [session] says, over the settings given.
SessionSettings session_settings(const Config& config, SessionSettings under,
                                 const std::string& home);

// What [server] says, over the settings given.
ServerSettings server_settings(const Config& config, ServerSettings under, const std::string& home);

// The groups, without where they stand.
NetGroups net_groups(const Config& config);

Result<Config> parse_config(std::string_view text, const ConfigSource& source);

// `file:line:column: what`, fit for a terminal.
Error config_error(std::string_view file, Position position, std::string_view what,
                   const std::string& hint);

}  // namespace belljar
