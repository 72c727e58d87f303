#include "plan/promises.h"

#include <algorithm>

namespace belljar {
namespace {

Status refuse_broken(const Plan& plan) {
  for (const Loss& loss : plan.losses) {
    if (!loss.broken || plan.policy.need(loss.promise) != Need::required) continue;
    if (std::ranges::find(plan.policy.accepted, loss.promise) != plan.policy.accepted.end())
      continue;
    std::string promise(name(loss.promise));
    return fail("cannot keep the promise \"" + promise + "\": " + loss.what, 0,
                loss.hint + "; or accept the loss: --accept-degraded=" + promise);
  }
  return {};
}

}  // namespace

Status judge_promises(Plan& plan, const Host& host) {
  (void)host;
  return refuse_broken(plan);
}

}  // namespace belljar
