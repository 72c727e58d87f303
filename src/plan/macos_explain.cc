#include "plan/macos_explain.h"

namespace belljar {

Plan as_plan(MacPlan mac) {
  Plan plan;
  plan.policy = std::move(mac.policy);
  plan.layout = std::move(mac.layout);
  plan.seatbelt = std::move(mac.seatbelt);
  plan.environment = std::move(mac.environment);
  plan.kept = std::move(mac.kept);
  plan.losses = std::move(mac.losses);
  plan.warnings = std::move(mac.warnings);
  return plan;
}

}  // namespace belljar
