#include "cli/configuration.h"

#include <cstdlib>
#include <filesystem>

namespace belljar::cli {
namespace {

// A relative one must be ignored, says the XDG Base Directory Specification.
std::string base_folder(const char* variable, const std::string& otherwise) {
  const char* value = std::getenv(variable);
  return value != nullptr && value[0] == '/' ? value : otherwise;
}

}  // namespace

ConfigPlaces config_places(const Caller& caller) {
  const char* mode = std::getenv("BELLJAR_SANDBOX");
  return {.cwd = caller.cwd,
          .home = caller.home,
          .user_file =
              base_folder("XDG_CONFIG_HOME", caller.home + "/.config") + "/belljar/config.toml",
          .trust_file =
              base_folder("XDG_STATE_HOME", caller.home + "/.local/state") + "/belljar/trusted",
          .mode_variable = mode != nullptr ? mode : ""};
}

Result<LoadedHere> load_here_with_files(const Settings& flags) {
  const ConfigPlaces places = config_places(this_caller());
  LoadedHere here{.loaded = {}, .files = TRY(read_config_files(places))};
  here.loaded = TRY(load(here.files, places, flags));
  return here;
}

Result<Loaded> load_here(const Settings& flags) {
  return std::move(TRY(load_here_with_files(flags)).loaded);
}

Result<Loaded> load_for(const Settings& flags, const std::string& folder) {
  ConfigPlaces places = config_places(this_caller());
  const std::optional<std::string> path = TRY(find_project_file(folder));
  // Errors call the file by where the person is, who is not there.
  ConfigFiles files;
  if (path) files = TRY(read_config_files(places, *path));
  places.cwd = folder;
  if (!path) files = TRY(read_config_files(places));
  return load(files, places, flags);
}

Result<std::string> project_file(const std::string& argument, const ConfigPlaces& places) {
  if (argument.empty()) {
    std::optional<std::string> found = TRY(find_project_file(places.cwd));
    if (found) return *found;
    return fail("there is no belljar.toml in " + places.cwd + " or above", 0,
                "belljar init makes one");
  }
  std::error_code not_there;  // then opening the file will say so
  if (std::filesystem::is_directory(argument, not_there)) return argument + "/belljar.toml";
  return argument;
}

}  // namespace belljar::cli
