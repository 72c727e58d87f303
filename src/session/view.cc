#include "session/view.h"

#include <algorithm>

#include "plan/explain.h"

namespace belljar::session {

SessionView view_of(const Plan& plan) {
  SessionView view{.policy = plan.policy,
                   .workdir = plan.layout.workdir,
                   .roots = {},
                   .home = {},
                   .unreached = {"/proc", "/dev"},
                   .plan = explain_json(plan)};
  for (const std::string& variable : plan.environment)
    if (variable.starts_with("HOME=/")) view.home = variable.substr(5);
  for (const PrivateDir& dir : plan.layout.private_dirs) view.unreached.push_back(dir.inside);
  for (const Text& text : plan.layout.texts) view.unreached.push_back(text.inside);
  if (plan.layout.whole_root) view.unreached.emplace_back("/");
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
  // Where all of / is shown in the same way, no place of its own was needed for it.
  const auto is_workdir = [&](const SessionRoot& root) { return root.inside == view.workdir; };
  if (plan.layout.whole_root && !view.workdir.empty() &&
      std::ranges::none_of(view.roots, is_workdir))
    view.roots.push_back(
        {.inside = view.workdir, .outside = view.workdir, .writable = plan.layout.root_writable});
  return view;
}

Look look_at(Policy policy, Host host, Caller caller) {
  return [policy = std::move(policy), host = std::move(host),
          caller = std::move(caller)]() -> Result<SessionView> {
    return view_of(TRY(resolve(policy, host, caller, Purpose::explain)));
  };
}

}  // namespace belljar::session
