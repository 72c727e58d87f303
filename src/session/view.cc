#include "session/view.h"

#include "plan/explain.h"

namespace belljar::session {

SessionView view_of(const Plan& plan) {
  SessionView view{.policy = plan.policy,
                   .workdir = plan.layout.workdir,
                   .roots = {},
                   .plan = explain_json(plan)};
  if (plan.layout.whole_root)
    view.roots.push_back({.inside = "/", .outside = "/", .writable = plan.layout.root_writable});
  for (const Place& place : plan.layout.places) {
    if (place.device || place.pin) continue;
    view.roots.push_back({.inside = place.inside,
                          .outside = place.path,
                          .writable = place.access == Access::write,
                          .hidden = place.access == Access::hide,
                          .owned = place.owned});
  }
  return view;
}

}  // namespace belljar::session
