#include "plan/findings.h"

#include <boost/json.hpp>

namespace belljar {

namespace json = boost::json;

std::vector<Finding> findings(const Host& host) {
  const std::string abi = "ABI " + std::to_string(host.landlock.abi);
  return {
      {"user namespaces", host.identity.user_namespaces, host.identity.why_not,
       "an own root, processes and network for an ordinary user"},
      {"mounts of our own", host.view.mounts, host.view.why_no_mounts,
       "the view: files, hide and protect"},
      {"a new /proc", host.view.proc, host.view.why_no_proc, "processes outside cannot be seen"},
      {"network namespaces", host.net.namespaces, "", "network none and loopback"},
      {"landlock", host.landlock.abi > 0, abi,
       "a second lock on files; from ABI 6 on signals and sockets"},
      {"seccomp", host.seccomp.filters, "", "fewer system calls"},
      {"cgroup v2", !host.cgroup.parent.empty(),
       host.cgroup.parent.empty() ? host.cgroup.why_not : host.cgroup.parent,
       "memory and processes summed by the kernel (else a watchdog does it)"},
  };
}

std::string profile_verdict(const Profile& profile, const Host& host, const Caller& caller) {
  Policy policy = profile.policy;
  policy.files.workdir = "/tmp";
  Result<Plan> plan = resolve(policy, host, caller, Purpose::explain);
  Status refused = plan ? refuse_lost_promises(*plan) : Status(std::unexpected(plan.error()));
  if (!refused) return "does not start: " + refused.error().what;
  return plan->losses.empty()
             ? "all promises kept"
             : "starts, with " + std::to_string(plan->losses.size()) +
                   (plan->losses.size() == 1 ? " loss" : " losses") +
                   " (belljar explain --profile=" + std::string(profile.name) + ")";
}

json::object doctor_json(const Host& host, const Caller& caller) {
  json::object result;
  result["schema_version"] = 1;
  json::array& array = result["findings"].emplace_array();
  for (const Finding& f : findings(host))
    array.push_back(
        {{"name", f.name}, {"there", f.there}, {"detail", f.detail}, {"gives", f.gives}});
  json::object& profiles_object = result["profiles"].emplace_object();
  for (const Profile& profile : profiles())
    profiles_object[profile.name] = profile_verdict(profile, host, caller);
  return result;
}

}  // namespace belljar
