#include "plan/outcome_json.h"

#include <boost/json.hpp>

#include "base/json.h"

namespace belljar {
namespace {

namespace json = boost::json;

json::object to_json(const NetworkEvent& event) {
  using std::chrono::milliseconds;
  json::object result;
  result["time_ms"] =
      std::chrono::duration_cast<milliseconds>(event.time.time_since_epoch()).count();
  result["pid"] = event.pid;
  result["process"] = event.process;
  result["name"] = event.name;
  result["address"] = event.address;
  result["port"] = event.port;
  result["protocol"] = event.protocol;
  result["allowed"] = event.allowed;
  result["rule"] = event.rule;
  result["why"] = event.why;
  if (!event.allowed) result["would_allow"] = event.would_allow;
  return result;
}

}  // namespace

json::object outcome_to_json(const Policy& policy, const Outcome& outcome) {
  json::object report;
  report["schema_version"] = 1;
  report["profile"] = policy.profile;
  report["mode"] = name(policy.mode);
  report["reason"] = name(outcome.reason);
  report["exit_code"] = outcome.exit_code();
  if (outcome.by_signal)
    report["signal"] = outcome.code;
  else
    report["status"] = outcome.code;
  report["wall_ms"] = static_cast<double>(outcome.wall.count()) / 1000;
  report["user_cpu_ms"] = static_cast<double>(outcome.user_cpu.count()) / 1000;
  report["system_cpu_ms"] = static_cast<double>(outcome.system_cpu.count()) / 1000;
  report["peak_memory_kb"] = outcome.peak_memory_kb;
  report["limits_hit"] = json::array(outcome.limits_hit.begin(), outcome.limits_hit.end());
  report["enforced"] = promises_to_json(outcome.kept);
  report["losses"] = losses_to_json(outcome.losses);
  if (policy.network == Network::hosts) {
    json::array& events = report["network"].emplace_array();
    for (const NetworkEvent& event : outcome.network) events.push_back(to_json(event));
    report["network_dropped"] = outcome.network_dropped;
  }
  json::object& phases = report["launch_us"].emplace_object();
  for (const auto& [phase, time] : outcome.phases) phases[phase] = time.count();
  return report;
}

}  // namespace belljar
