#include "plan/bound.h"

#include "layers/layout.h"

namespace belljar {

Status check_bound(const Plan& plan, const Reach& bound, const std::string& own) {
  for (const Place& place : plan.layout.places) {
    const bool grants = place.access == Access::read || place.access == Access::write;
    const bool callers_home = place.from == "home" && plan.policy.files.home_dir.empty();
    // Not the project's to name, as a flag of the caller's is not; a credential's name was judged.
    const bool others = place.from == "system" || place.from == "toolchain" ||
                        place.from == "private" || place.from == "credential" ||
                        place.from == "skills" || place.from.starts_with("--") || callers_home;
    const bool is_own = !own.empty() && is_below(place.path, own);
    if (!grants || place.pin || others || is_own || bound.allows(place.path, place.access))
      continue;
    return fail("belljar.toml is not trusted, and its " + place.from + " led to " + place.path +
                    " when it was opened",
                0, "something has changed a symlink meanwhile");
  }
  return {};
}

}  // namespace belljar
