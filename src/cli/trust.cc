// trust: let a project's belljar.toml widen the policy, as it is now. A file that
// changes by a byte is a stranger again.
#include "policy/trust.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/file.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "cli/configuration.h"
#include "cli/flags.h"

namespace belljar::cli {
namespace {

Result<int> list(const ConfigPlaces& places) {
  const std::vector<Trusted> all = TRY(read_trusted(places.trust_file));
  if (all.empty()) std::puts("No file is trusted.");
  for (const Trusted& entry : all) {
    Result<std::string> text = read_regular(entry.path, kMaxConfigBytes);
    const char* state = !text ? "gone" : sha256_hex(*text) == entry.hash ? "trusted" : "changed";
    std::printf("%-7s  %s\n", state, printable(entry.path).c_str());
  }
  return 0;
}

Result<int> forget(const std::string& argument, const ConfigPlaces& places) {
  // The file may be gone, and its folder too.
  const std::string file = TRY(project_file(argument, places));
  const std::string path =
      project_path(file).value_or(std::filesystem::absolute(file).lexically_normal());
  if (!TRY(revoke(places.trust_file, path))) return fail(path + " was not trusted");
  std::printf("no longer trusted: %s\n", printable(path).c_str());
  return 0;
}

// No wider than the default profile, but perhaps than the one that the person will name.
void add_weighty(const Section& section, std::vector<Widening>& all) {
  for (const auto& [name, position] : section.positions)
    if ((name == "network" || name == "mode" || name == "profile") &&
        std::ranges::find(all, position, &Widening::position) == all.end())
      all.push_back({position, name, "chosen by this file, whatever the default is"});
}

// What is shown, hashed and remembered comes from one reading of the file.
Result<int> accept(const std::string& argument, ConfigPlaces places) {
  const std::string file = TRY(project_file(argument, places));
  places.cwd = std::filesystem::path(TRY(project_path(file))).parent_path();
  const ConfigFiles files = TRY(read_config_files(places, file));
  const Project& project = *files.project;
  std::vector<Widening> accepted = TRY(all_widenings(files, places));
  add_weighty(project.config.sandbox, accepted);
  for (const auto& [name, task] : project.config.tasks) add_weighty(task.section, accepted);
  TRY(belljar::trust(places.trust_file, {.hash = project.hash, .path = project.path}));

  std::printf("trusted: %s\n", printable(project.path).c_str());
  if (accepted.empty()) std::puts("It asks for nothing beyond what untrusted projects may have.");
  for (const Widening& widening : accepted)
    std::printf("  line %u: %s: %s\n", widening.position.line, printable(widening.what).c_str(),
                printable(widening.why).c_str());
  return 0;
}

Result<int> run_trust(const Arguments& arguments) {
  bool wants_list = false;
  bool wants_revoke = false;
  Parsed parsed = TRY(parse_flags(arguments, {{.name = "list", .seen = &wants_list},
                                              {.name = "revoke", .seen = &wants_revoke}}));
  if (parsed.settings != Settings{} || parsed.rest.size() > 1 || (wants_list && wants_revoke))
    return fail("wrong arguments", 0, "belljar trust [--list | --revoke] [PATH]");
  const ConfigPlaces places = config_places(this_caller());
  const std::string argument = parsed.rest.empty() ? "" : parsed.rest[0];
  if (wants_list) return list(places);
  return wants_revoke ? forget(argument, places) : accept(argument, places);
}

}  // namespace

int trust(const Arguments& arguments) { return report(run_trust(arguments)); }

}  // namespace belljar::cli
