// The configuration as it applies to the person who started belljar, here.
#pragma once

#include "cli/cli.h"
#include "policy/load.h"

namespace belljar::cli {

// From the environment: HOME, XDG_CONFIG_HOME, XDG_STATE_HOME, BELLJAR_SANDBOX.
ConfigPlaces config_places(const Caller& caller);

// The flags over the files that apply in the current folder.
Result<Loaded> load_here(const Settings& flags);
// The flags over the files that apply in another folder, which the person named.
Result<Loaded> load_for(const Settings& flags, const std::string& folder);
// Here, and which files those are.
struct LoadedHere {
  Loaded loaded;
  ConfigFiles files;
};
Result<LoadedHere> load_here_with_files(const Settings& flags);

// The file that an argument names: itself, the one in a folder, or without one
// that of the current folder or of the nearest above.
Result<std::string> project_file(const std::string& argument, const ConfigPlaces& places);

}  // namespace belljar::cli
