// explain: what would be enforced here, and what not and why.
#include "plan/explain.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>

#include "base/json.h"
#include "base/printable.h"
#include "cli/cli.h"
#include "cli/configuration.h"
#include "cli/exec.h"
#include "cli/flags.h"
#include "plan/macos_explain.h"

namespace belljar::cli {
namespace {

std::string printable_lines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    out.append(printable(line)).append("\n");
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return out;
}

namespace json = boost::json;

struct Asked {
  Settings flags;
  std::string why;
  std::string platform;
  bool as_json = false;
};

Result<Asked> parse(const Arguments& arguments) {
  Asked asked;
  Parsed parsed = TRY(parse_flags(arguments, {{.name = "json", .seen = &asked.as_json},
                                              {.name = "platform", .value = &asked.platform},
                                              {.name = "why", .value = &asked.why}}));
  asked.flags = std::move(parsed.settings);
  // What follows `--` is a command, as for exec: what it may do does not depend on it.
  const bool command = std::ranges::find(arguments, "--") != arguments.end();
  if (!parsed.rest.empty() && !command)
    return fail("explain takes no argument " + parsed.rest[0], 0,
                "about one path or host: belljar explain --why " + parsed.rest[0]);
  if (!asked.platform.empty() && asked.platform != "macos" && asked.platform != "linux")
    return fail("platform: there is no sandbox for " + asked.platform, 0,
                "--platform=macos, or leave it out for this host");
  if (asked.platform == "macos" && !asked.why.empty())
    return fail("--why is about this host, and --platform=macos is not", 0,
                "the profile that --platform=macos prints has the rule");
  return asked;
}

json::array to_json(const ConfigFiles& files) {
  json::array array;
  if (files.user) array.push_back({{"file", files.user->file}, {"trusted", true}});
  if (files.project)
    array.push_back({{"file", files.project->path}, {"trusted", files.project->trusted}});
  return array;
}

std::string in_words(const ConfigFiles& files) {
  std::string text = "\nConfiguration\n";
  if (files.user) text += "  " + printable(files.user->file) + "\n";
  if (files.project)
    text += "  " + printable(files.project->path) +
            (files.project->trusted ? "  (trusted)\n" : "  (not trusted: it can only narrow)\n");
  if (!files.user && !files.project) text += "  no files: the defaults and the flags\n";
  return text;
}

std::string answer(const Plan& plan, const Asked& asked, const ConfigFiles& files,
                   const Caller& caller) {
  if (!asked.why.empty()) {
    std::string text = explain_why(plan, asked.why, caller);
    text.resize(text.find_last_not_of('\n') + 1);
    if (!asked.as_json) return printable_lines(text);
    return pretty(json::object{{"schema_version", 1}, {"why", asked.why}, {"answer", text}});
  }
  if (!asked.as_json) return explain(plan) + in_words(files);
  json::object object = explain_json(plan);
  object["configuration"] = to_json(files);
  return pretty(object);
}

Result<int> run_explain(const Arguments& arguments) {
  const Asked asked = TRY(parse(arguments));
  const Caller caller = this_caller();
  const LoadedHere here = TRY(load_here_with_files(asked.flags));
  const Policy& policy = here.loaded.policy;
  TRY(check_workdir(here.loaded, caller));
  if (policy.mode == Mode::off) return fail("mode is off: nothing would be enforced");
  const bool mac = asked.platform == "macos";
  Plan plan = mac ? as_plan(TRY(resolve_for_mac(policy, caller, observe_mac(policy, caller))))
                  : TRY(resolve(policy, probe_host(caller), caller, Purpose::explain));
  std::fputs(answer(plan, asked, here.files, caller).c_str(), stdout);
  Status refused = refuse_lost_promises(plan);
  if (refused) return 0;
  print_error(refused.error());
  return kFailure;
}

}  // namespace

int explain(const Arguments& arguments) { return report(run_explain(arguments)); }

}  // namespace belljar::cli
