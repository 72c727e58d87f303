// The configuration files that apply in a folder: the project's belljar.toml, in
// it or above, and the person's own config.toml. What they come to together is in
// load.h.
#pragma once

#include <optional>
#include <string>

#include "policy/toml.h"

namespace belljar {

// Where to look. Everything is absolute; a file that is not there says nothing.
struct ConfigPlaces {
  std::string cwd;
  std::string home;
  std::string user_file;      // ~/.config/belljar/config.toml
  std::string trust_file;     // ~/.local/state/belljar/trusted
  std::string mode_variable;  // BELLJAR_SANDBOX; may be empty
};

struct Project {
  Config config;
  std::string path;  // the folder resolved, the name as it is: see project_path()
  std::string hash;  // of the very bytes that were parsed
  bool trusted = false;
};

struct ConfigFiles {
  std::optional<Config> user;
  std::optional<Project> project;
};

// A file that is there and cannot be read is an error: it may be the one that
// narrows.
Result<ConfigFiles> read_config_files(const ConfigPlaces& places);
// The same, with the project file at `path` instead of the one found upward.
Result<ConfigFiles> read_config_files(const ConfigPlaces& places, const std::string& path);

// The belljar.toml of the folder, or of the nearest one above it; nullopt if none.
Result<std::optional<std::string>> find_project_file(const std::string& folder);

// The name by which a project file is trusted. Its last part is not followed: a
// symlink to a trusted file would bring that file's wishes to another folder.
Result<std::string> project_path(const std::string& path);

}  // namespace belljar
