#include "plan/explain.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/json.h"
#include "base/printable.h"
#include "plan/explain_network.h"

namespace belljar {
namespace {

namespace json = boost::json;

std::string join(const std::vector<std::string>& parts, std::string_view with) {
  std::string text;
  for (const std::string& part : parts) text.append(text.empty() ? "" : with).append(part);
  return text;
}

std::string_view meaning(Promise promise) {
  switch (promise) {
    case Promise::files:
      return "cannot read or write what is not granted";
    case Promise::exceptions:
      return "cannot reach what is hidden or change what is protected";
    case Promise::network:
      return "cannot reach what the network mode does not allow";
    case Promise::processes:
      return "cannot see, signal or trace anything outside";
    case Promise::environment:
      return "cannot see your variables, but for those passed";
    case Promise::limits:
      return "cannot exceed memory, CPU, processes, descriptors, file size";
    case Promise::syscalls:
      return "cannot use the parts of the kernel that programs do not need";
  }
  return "";
}

std::string_view need_name(Need need) {
  return need == Need::required      ? "required"
         : need == Need::best_effort ? "best effort"
                                     : "not asked";
}

const Kept* find_kept(const Plan& plan, Promise promise) {
  auto at = std::ranges::find(plan.kept, promise, &Kept::promise);
  return at == plan.kept.end() ? nullptr : &*at;
}

std::vector<std::pair<std::string, std::optional<std::uint64_t>>> limits_of(const Limits& limits) {
  std::optional<std::uint64_t> timeout;
  if (limits.timeout) timeout = static_cast<std::uint64_t>(limits.timeout->count());
  return {{"max_memory_mb", limits.memory_mb},   {"max_cpu_secs", limits.cpu_secs},
          {"max_procs", limits.procs},           {"max_open_fds", limits.open_fds},
          {"max_file_sz_mb", limits.file_sz_mb}, {"timeout_ms", timeout}};
}

std::vector<std::string> layers_for_mac(const Plan& plan) {
  std::vector<std::string> layers;
  if (!plan.policy.environment.everything) layers.emplace_back("env scrub");
  layers.emplace_back("seatbelt: the profile below, in force from before the command starts");
  layers.emplace_back("rlimits");
  if (plan.seatbelt->watched_memory_mb || plan.seatbelt->watched_cpu_secs)
    layers.emplace_back("watchdog: memory and CPU of the process group, looked at now and then");
  return layers;
}

std::vector<std::string> layers_of(const Plan& plan) {
  if (plan.seatbelt) return layers_for_mac(plan);
  std::vector<std::string> layers;
  if (plan.identity)
    layers.emplace_back(plan.identity->root
                            ? "identity: an own unprivileged uid for the jar"
                            : "identity: your uid in a user namespace, without capabilities");
  if (plan.view)
    layers.push_back("view: an own root with " + std::to_string(plan.view->ops.size()) +
                     " mount steps");
  if (plan.pid_namespace) layers.emplace_back("pid, ipc, uts and cgroup namespaces with an init");
  if (plan.net) layers.emplace_back("network namespace");
  if (!plan.policy.environment.everything) layers.emplace_back("env scrub");
  if (!plan.rlimit.limits.empty()) layers.emplace_back("rlimits");
  if (plan.cgroup) layers.emplace_back("cgroup");
  if (plan.watchdog) layers.emplace_back("watchdog: memory and CPU summed by the supervisor");
  layers.emplace_back("no capabilities, no_new_privs");
  if (plan.landlock) layers.push_back("landlock ABI " + std::to_string(plan.landlock->abi));
  if (plan.makes_connects())
    layers.emplace_back("supervised connects: only to sockets in its own folders");
  if (plan.seccomp)
    layers.emplace_back(plan.policy.syscalls == Syscalls::allow_list ? "seccomp allow-list"
                                                                     : "seccomp deny-list");
  return layers;
}

void add_promises(std::string& text, const Plan& plan) {
  text += "The guest\n";
  for (std::size_t i = 0; i < kPromiseCount; ++i) {
    const auto promise = static_cast<Promise>(i);
    const Kept* kept = find_kept(plan, promise);
    const bool broken = std::ranges::any_of(
        plan.losses, [&](const Loss& loss) { return loss.promise == promise && loss.broken; });
    if (kept == nullptr && !broken) continue;
    text.append(broken ? "  NOT KEPT  " : "  kept      ").append(meaning(promise));
    if (kept != nullptr && !broken)
      text.append("\n            by ").append(join(kept->layers, " and "));
    text += "\n";
  }
  if (plan.losses.empty()) return;
  text += plan.seatbelt ? "\nWhat a Mac lacks\n" : "\nWhat this host lacks\n";
  for (const Loss& loss : plan.losses)
    text.append("  ")
        .append(name(loss.promise))
        .append(loss.broken ? " (lost): " : " (less depth): ")
        .append(loss.what)
        .append("\n      to get it: ")
        .append(loss.hint)
        .append("\n");
}

void add_files(std::string& text, const Plan& plan) {
  const Layout& layout = plan.layout;
  text += "\nFiles\n";
  if (layout.whole_root)
    text += layout.root_writable ? "  write    /  (everything you may write)\n" : "  read     /\n";
  for (const Place& place : layout.places) {
    if (place.device || place.pin) continue;
    std::string access(name(place.access));
    access.resize(9, ' ');
    text.append("  ").append(access).append(printable(place.path));
    if (place.inside != place.path) text.append(" at ").append(printable(place.inside));
    text.append("  (").append(place.from).append(")\n");
  }
  for (const PrivateDir& dir : layout.private_dirs)
    text.append("  private  ")
        .append(dir.inside)
        .append(plan.view ? "  (empty, in memory, gone at the end)\n"
                          : "  (empty, elsewhere, gone at the end)\n");
}

void add_seatbelt(std::string& text, const seatbelt::Plan& plan) {
  text += "\nCommand\n  ";
  for (const std::string& word : plan.wrap)
    text.append(&word == &plan.wrap[2] ? "PROFILE" : printable(word)).append(" ");
  text += "COMMAND…\n\nProfile\n";
  std::string_view rest = plan.profile;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    text.append("  ").append(printable(line)).append("\n");
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
}

}  // namespace

std::string explain(const Plan& plan) {
  const Policy& policy = plan.policy;
  std::string text =
      "Profile " + policy.profile + ", sandbox mode " + std::string(name(policy.mode)) + ".\n\n";
  add_promises(text, plan);
  add_files(text, plan);
  const bool shared = plan.seatbelt && policy.network == Network::loopback;
  text.append("\nNetwork\n")
      .append(shared ? "  loopback: this machine's, with its services; no other can be reached\n"
                     : explain_network(policy));
  text += "\nVariables\n  ";
  if (policy.environment.everything) {
    text += "all of yours";
  } else {
    std::vector<std::string> names;
    for (const std::string& variable : plan.environment)
      names.push_back(variable.substr(0, variable.find('=')));
    text += join(names, " ");
  }
  text += "\n\nLimits\n";
  for (const auto& [limit, value] : limits_of(policy.limits))
    if (value)
      text.append("  ").append(limit).append(" ").append(std::to_string(*value)).append("\n");
  text += "\nLayers\n";
  for (const std::string& layer : layers_of(plan)) text.append("  ").append(layer).append("\n");
  for (const std::string& warning : plan.warnings)
    text.append("\nWarning: ").append(printable(warning)).append("\n");
  if (plan.seatbelt) add_seatbelt(text, *plan.seatbelt);
  return text;
}

json::object explain_json(const Plan& plan) {
  const Policy& policy = plan.policy;
  json::object result;
  result["schema_version"] = 1;
  result["profile"] = policy.profile;
  result["mode"] = name(policy.mode);
  json::array& promises = result["promises"].emplace_array();
  for (std::size_t i = 0; i < kPromiseCount; ++i) {
    const auto promise = static_cast<Promise>(i);
    const Kept* kept = find_kept(plan, promise);
    json::array layers;
    if (kept != nullptr) layers = json::array(kept->layers.begin(), kept->layers.end());
    promises.push_back({{"promise", name(promise)},
                        {"need", need_name(policy.need(promise))},
                        {"kept_by", layers}});
  }
  result["losses"] = losses_to_json(plan.losses);
  json::array& files = result["files"].emplace_array();
  if (plan.layout.whole_root)
    files.push_back({{"path", "/"},
                     {"inside", "/"},
                     {"access", plan.layout.root_writable ? "write" : "read"},
                     {"from", "profile"}});
  for (const Place& place : plan.layout.places)
    if (!place.device && !place.pin)
      files.push_back({{"path", place.path},
                       {"inside", place.inside},
                       {"access", name(place.access)},
                       {"from", place.from}});
  json::array& dirs = result["private"].emplace_array();
  for (const PrivateDir& dir : plan.layout.private_dirs) dirs.push_back(json::string(dir.inside));
  result["workdir"] = plan.layout.workdir;
  result["home"] = plan.layout.home;
  result["network"] = name(policy.network);
  result["network_rules"] = network_rules_to_json(policy);
  result["publish"] = published_to_json(policy);
  json::array& variables = result["variables"].emplace_array();
  for (const std::string& variable : plan.environment)
    variables.push_back(json::string(variable.substr(0, variable.find('='))));
  json::object& limits = result["limits"].emplace_object();
  for (const auto& [limit, value] : limits_of(policy.limits))
    if (value)
      limits[limit] = *value;
    else
      limits[limit] = "unlimited";
  std::vector<std::string> layers = layers_of(plan);
  result["layers"] = json::array(layers.begin(), layers.end());
  result["warnings"] = json::array(plan.warnings.begin(), plan.warnings.end());
  if (plan.seatbelt) {
    result["platform"] = "macos";
    const std::vector<std::string>& wrap = plan.seatbelt->wrap;
    result["seatbelt"] = {{"profile", plan.seatbelt->profile},
                          {"arguments", json::array(wrap.begin(), wrap.end())},
                          {"scratch", plan.seatbelt->scratch}};
  }
  return result;
}

}  // namespace belljar
