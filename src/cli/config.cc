// config: check belljar.toml, and describe it for editors.
#include <boost/json.hpp>
#include <cstdio>
#include <filesystem>

#include "base/json.h"
#include "base/printable.h"
#include "cli/config_schema.h"
#include "cli/configuration.h"

namespace belljar::cli {
namespace {

constexpr int kBad = 1;

// Where the file is valid but not trusted, what it would need trust for.
Result<int> check_project(const std::string& file, const ConfigPlaces& places) {
  ConfigPlaces there = places;
  there.cwd = std::filesystem::path(TRY(project_path(file))).parent_path();
  const ConfigFiles files = TRY(read_config_files(there, file));
  const Project& project = *files.project;
  const Config& config = project.config;
  std::printf("%s: ok, %s in [sandbox], %s, %s, %s\n", printable(project.path).c_str(),
              counted(config.sandbox.positions.size(), "key").c_str(),
              counted(config.profiles.size(), "profile").c_str(),
              counted(config.tasks.size(), "task").c_str(),
              project.trusted ? "trusted" : "not trusted");
  const std::vector<Widening> asked = TRY(all_widenings(files, there));
  for (const Widening& widening : asked) {
    const std::string line =
        config.error(widening.position, widening.what).what + " widens the policy: " + widening.why;
    std::printf("%s\n", printable(line).c_str());
  }
  if (!asked.empty() && !project.trusted)
    std::puts("belljar refuses these until you run `belljar trust`.");
  return 0;
}

bool is_own(const std::string& file, const ConfigPlaces& places) {
  std::error_code not_there;  // then it is another
  return std::filesystem::equivalent(file, places.user_file, not_there);
}

// The person's own file, as it is used where there is no project.
Result<int> check_own(const ConfigPlaces& places) {
  ConfigPlaces nowhere = places;
  nowhere.cwd = "/";
  ConfigFiles files = TRY(read_config_files(nowhere));
  files.project.reset();
  TRY(load(files, nowhere, {}));
  std::printf("%s: ok\n", printable(places.user_file).c_str());
  return 0;
}

Result<int> check(const Arguments& arguments) {
  if (arguments.size() > 1) return fail("wrong arguments", 0, "belljar config check [FILE]");
  const ConfigPlaces places = config_places(this_caller());
  if (!arguments.empty() && is_own(arguments[0], places)) return check_own(places);
  if (!arguments.empty()) return check_project(TRY(project_file(arguments[0], places)), places);
  const ConfigFiles files = TRY(read_config_files(places));
  if (files.user) std::printf("%s: ok\n", printable(files.user->file).c_str());
  if (files.project) return check_project(files.project->path, places);
  if (!files.user) std::puts("There is no configuration here: the defaults apply.");
  return 0;
}

}  // namespace

int config(const Arguments& arguments) {
  const Arguments rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  if (!arguments.empty() && arguments[0] == "check") {
    Result<int> code = check(rest);
    if (!code) print_error(code.error());
    return code.value_or(kBad);
  }
  if (arguments == Arguments{"schema"}) {
    std::fputs(pretty(config_schema()).c_str(), stdout);
    return 0;
  }
  return report(
      fail("wrong arguments", 0, "belljar config check [FILE], or belljar config schema"));
}

}  // namespace belljar::cli
