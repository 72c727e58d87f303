// explain: what would be enforced here, and what not and why.
#include "plan/explain.h"

#include <boost/json.hpp>

#include <cstdio>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/configuration.h"
#include "cli/exec.h"
#include "cli/flags.h"

namespace belljar::cli {
namespace {

Result<int> run_explain(const Arguments& arguments) {
  bool as_json = false;
  std::string why;
  Parsed parsed = TRY(
      parse_flags(arguments, {{.name = "json", .seen = &as_json}, {.name = "why", .value = &why}}));
  const Caller caller = this_caller();
  Loaded loaded = TRY(load_here(parsed.settings));
  const Policy& policy = loaded.policy;
  TRY(check_workdir(loaded, caller));
  if (policy.mode == Mode::off) return fail("mode is off: nothing would be enforced");
  Plan plan = TRY(resolve(policy, probe_host(caller), caller, Purpose::explain));
  std::string text = !why.empty() ? explain_why(plan, why, caller)
                     : as_json    ? pretty(explain_json(plan))
                                  : explain(plan);
  std::fputs(text.c_str(), stdout);
  Status refused = refuse_lost_promises(plan);
  if (refused) return 0;
  print_error(refused.error());
  return kFailure;
}

}  // namespace

int explain(const Arguments& arguments) { return report(run_explain(arguments)); }

}  // namespace belljar::cli
