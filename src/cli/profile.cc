// profile: the policies to start from, built in and the person's own.
#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>

#include "base/json.h"
#include "base/printable.h"
#include "cli/configuration.h"
#include "cli/flags.h"
#include "cli/summary.h"

namespace belljar::cli {
namespace {

namespace json = boost::json;

struct Listed {
  std::string name;
  std::string purpose;
  std::string source;  // "built-in", or the file
};

std::vector<Listed> all_profiles(const ConfigFiles& files) {
  std::vector<Listed> all;
  for (const Profile& profile : profiles())
    all.push_back({std::string(profile.name), std::string(profile.purpose), "built-in"});
  auto add = [&](const Config& config) {
    for (const auto& [name, profile] : config.profiles)
      all.push_back({name, "extends " + profile.extends, config.file});
  };
  if (files.user) add(*files.user);
  if (files.project) add(files.project->config);
  return all;
}

void list(const ConfigFiles& files, bool as_json) {
  const std::vector<Listed> all = all_profiles(files);
  json::object root = {{"schema_version", 1}, {"default", kDefaultProfile}};
  json::array& array = root["profiles"].emplace_array();
  std::size_t width = 0;
  for (const Listed& profile : all) width = std::max(width, profile.name.size());
  for (const Listed& profile : all) {
    array.push_back(
        {{"name", profile.name}, {"purpose", profile.purpose}, {"source", profile.source}});
    if (as_json) continue;
    const bool built_in = profile.source == "built-in";
    const std::string text = profile.purpose + (built_in ? "" : ", in " + profile.source);
    std::printf("%-*s  %s\n", static_cast<int>(width), profile.name.c_str(),
                printable(text).c_str());
  }
  if (as_json) std::fputs(pretty(root).c_str(), stdout);
}

// The profile alone: what the files say besides is not part of it.
Result<int> show(ConfigFiles files, const ConfigPlaces& places, const std::string& name,
                 bool as_json) {
  for (Config* config :
       {files.user ? &*files.user : nullptr, files.project ? &files.project->config : nullptr})
    if (config != nullptr) config->sandbox = {};
  const Policy policy = TRY(load(files, places, {.profile = name})).policy;
  json::object root = policy_to_json(policy);
  root["schema_version"] = 1;
  if (!as_json) std::printf("%s\n\n", printable(summary(policy)).c_str());
  std::fputs(pretty(root).c_str(), stdout);
  return 0;
}

Result<int> run_profile(const Arguments& arguments) {
  constexpr const char* kUsage = "belljar profile list [--json], or profile show NAME [--json]";
  Arguments words = arguments;
  const bool as_json = std::erase(words, "--json") > 0;
  const ConfigPlaces places = config_places(this_caller());
  ConfigFiles files = TRY(read_config_files(places));
  if (words == Arguments{"list"}) {
    list(files, as_json);
    return 0;
  }
  if (words.size() == 2 && words[0] == "show")
    return show(std::move(files), places, words[1], as_json);
  return fail("wrong arguments", 0, kUsage);
}

}  // namespace

int profile(const Arguments& arguments) { return report(run_profile(arguments)); }

}  // namespace belljar::cli
