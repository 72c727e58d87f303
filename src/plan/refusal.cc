#include "plan/refusal.h"

#include <algorithm>

namespace belljar {
namespace {

bool is_accepted(const Policy& policy, Promise promise) {
  return std::ranges::find(policy.accepted, promise) != policy.accepted.end();
}

}  // namespace

Status refuse_lost_promises(const Policy& policy, const std::vector<Loss>& losses) {
  const bool strict = policy.mode == Mode::full;
  std::string what;
  std::string hint;
  std::string accept;
  for (const Loss& loss : losses) {
    const bool matters = strict || (loss.broken && policy.need(loss.promise) == Need::required);
    if (!matters || is_accepted(policy, loss.promise)) continue;
    const std::string promise(name(loss.promise));
    what.append(what.empty() ? "cannot keep the promise \"" : "; nor \"").append(promise);
    what.append(loss.broken ? "\": " : "\" in full depth, as mode \"full\" requires: ");
    what.append(loss.what);
    if (hint.find(loss.hint) == hint.npos) hint.append(loss.hint).append("; ");
    const std::string flag = " --accept-degraded=" + promise;
    if (accept.find(flag) == accept.npos) accept += flag;
  }
  if (what.empty()) return {};
  return fail(what, 0, hint + "or accept the loss:" + accept);
}

}  // namespace belljar
