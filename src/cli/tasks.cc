// tasks: what belljar.toml offers to run, and what each may do.
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

// Below each task its policy, or why it has none.
void print(const Tasks::value_type& entry, const Result<Loaded>& loaded, std::size_t width) {
  const auto& [name, task] = entry;
  std::printf("%-*s  %s\n", static_cast<int>(width), name.c_str(),
              printable(task.description).c_str());
  std::string policy = loaded ? summary(loaded->policy) : "refused: " + loaded.error().what;
  std::printf("%*s  %s\n", static_cast<int>(width), "", printable(policy).c_str());
}

json::object to_json(const Tasks::value_type& entry, const Result<Loaded>& loaded) {
  const auto& [name, task] = entry;
  json::object object;
  object["name"] = name;
  object["description"] = task.description;
  object["run"] = json::array(task.run.begin(), task.run.end());
  object["depends"] = json::array(task.depends.begin(), task.depends.end());
  object["dir"] = task.dir;
  if (loaded)
    object["policy"] = policy_to_json(loaded->policy);
  else
    object["refused"] = loaded.error().message();
  return object;
}

Result<int> list_tasks(const Arguments& arguments) {
  bool as_json = false;
  Parsed parsed = TRY(parse_flags(arguments, {{.name = "json", .seen = &as_json}}));
  if (!parsed.rest.empty()) return fail("unexpected argument " + parsed.rest[0]);
  const ConfigPlaces places = config_places(this_caller());
  const std::string file = TRY(project_file("", places));
  const ConfigFiles files = TRY(read_config_files(places, file));
  const Project& project = *files.project;

  json::object root = {{"schema_version", 1}, {"file", project.path}, {"trusted", project.trusted}};
  json::array& all = root["tasks"].emplace_array();
  std::size_t width = 0;
  for (const auto& [name, task] : project.config.tasks) width = std::max(width, name.size());
  for (const auto& entry : project.config.tasks) {
    Result<Loaded> loaded = load(files, places, parsed.settings, &entry.second);
    if (as_json)
      all.push_back(to_json(entry, loaded));
    else
      print(entry, loaded, width);
  }
  if (as_json)
    std::fputs(pretty(root).c_str(), stdout);
  else if (project.config.tasks.empty())
    std::printf("%s has no tasks.\n", printable(project.config.file).c_str());
  return 0;
}

}  // namespace

int tasks(const Arguments& arguments) { return report(list_tasks(arguments)); }

}  // namespace belljar::cli
