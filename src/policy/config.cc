#include "policy/config.h"

#include <sys/stat.h>

#include <filesystem>

#include "base/file.h"
#include "base/sha256.h"
#include "policy/trust.h"

namespace belljar {
namespace {

namespace fs = std::filesystem;
constexpr const char* kProjectFile = "belljar.toml";

Result<std::string> resolve_folder(const std::string& folder) {
  std::error_code error;
  std::string real = fs::canonical(folder, error);
  if (error) return fail("folder " + folder, error.value());
  return real;
}

bool is_there(const std::string& path) {
  struct stat st{};
  // Anything but "not there" will be told by whoever opens it.
  return ::lstat(path.c_str(), &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

Result<std::optional<Config>> read_user_file(const ConfigPlaces& places) {
  if (places.user_file.empty() || !is_there(places.user_file)) return std::nullopt;
  std::string text = TRY(read_regular(places.user_file, kMaxConfigBytes));
  return parse_config(
      text, {.file = places.user_file,
             .origin = {.folder = fs::path(places.user_file).parent_path(), .home = places.home},
             .owner = ConfigSource::Owner::person});
}

Result<Project> read_project(const std::string& given, const ConfigPlaces& places,
                             const std::optional<Config>& user) {
  Project project;
  project.path = TRY(project_path(given));
  const std::string text = TRY(read_regular(project.path, kMaxConfigBytes));
  project.hash = sha256_hex(text);

  const fs::path path(project.path);
  const bool here = path.parent_path() == places.cwd;
  ConfigSource source{.file = here ? path.filename().string() : project.path,
                      .origin = {.folder = path.parent_path(), .home = places.home}};
  if (user) {
    for (const auto& [name, profile] : user->profiles) source.known_profiles.push_back(name);
    source.known_groups = net_groups(*user);
  }
  project.config = TRY(parse_config(text, source));
  project.trusted = is_trusted(TRY(read_trusted(places.trust_file)), project.path, project.hash);
  return project;
}

}  // namespace

Result<std::string> project_path(const std::string& path) {
  const fs::path given(path);
  std::string folder = TRY(resolve_folder(given.has_parent_path() ? given.parent_path() : "."));
  return (fs::path(folder) / given.filename()).string();
}

Result<std::optional<std::string>> find_project_file(const std::string& folder) {
  for (fs::path above = TRY(resolve_folder(folder));; above = above.parent_path()) {
    std::string path = above / kProjectFile;
    if (is_there(path)) return path;
    if (!above.has_relative_path()) return std::nullopt;
  }
}

Result<ConfigFiles> read_config_files(const ConfigPlaces& places) {
  std::optional<std::string> path = TRY(find_project_file(places.cwd));
  if (path) return read_config_files(places, *path);
  return ConfigFiles{.user = TRY(read_user_file(places)), .project = {}};
}

Result<ConfigFiles> read_config_files(const ConfigPlaces& places, const std::string& path) {
  ConfigFiles files;
  files.user = TRY(read_user_file(places));
  files.project = TRY(read_project(path, places, files.user));
  return files;
}

}  // namespace belljar
