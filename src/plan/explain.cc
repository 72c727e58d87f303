#include "plan/explain.h"

#include <boost/json.hpp>

#include <algorithm>

#include "base/json.h"
#include "base/printable.h"
#include "plan/paths.h"

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

std::string_view network_meaning(Network network) {
  switch (network) {
    case Network::none:
      return "none: no sockets but AF_UNIX";
    case Network::loopback:
      return "loopback: an own one; nothing outside can be reached";
    case Network::full:
      return "full: the host's network, without limits";
    case Network::hosts:
      return "only the hosts named";
  }
  return "";
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

std::vector<std::string> layers_of(const Plan& plan) {
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
  text += "\nWhat this host lacks\n";
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

}  // namespace

std::string explain(const Plan& plan) {
  const Policy& policy = plan.policy;
  std::string text =
      "Profile " + policy.profile + ", sandbox mode " + std::string(name(policy.mode)) + ".\n\n";
  add_promises(text, plan);
  add_files(text, plan);
  text.append("\nNetwork\n  ").append(network_meaning(policy.network)).append("\n");
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
  return result;
}

namespace {

bool looks_like_host(std::string_view text) {
  return !text.starts_with('/') && !text.starts_with('.') && !text.starts_with('~') &&
         text.find('/') == text.npos && text.find('.') != text.npos;
}

std::string why_host(const Plan& plan, std::string_view host) {
  std::string text(host);
  switch (plan.policy.network) {
    case Network::full:
      return text +
             ": can be reached. network = \"full\" is the host's own network; --network=none or "
             "--network=loopback would deny it.\n";
    case Network::loopback:
      return text +
             ": cannot be reached. network = \"loopback\" gives the guest a loopback of its own, "
             "kept by its network namespace; --network=full would allow every host.\n";
    default:
      return text +
             ": cannot be reached. network = \"none\", kept by the network namespace and seccomp; "
             "--network=full would allow every host.\n";
  }
}

const Place* most_specific(std::span<const Place> places, std::string_view path) {
  const Place* rule = nullptr;
  for (const Place& place : places)
    if (is_below(path, place.path) && (rule == nullptr || place.path.size() >= rule->path.size()))
      rule = &place;
  return rule;
}

}  // namespace

std::string explain_why(const Plan& plan, std::string_view path_or_host, const Caller& caller) {
  if (looks_like_host(path_or_host)) return why_host(plan, path_or_host);
  std::string given(path_or_host);
  if (given.starts_with('~')) given = caller.home + given.substr(1);
  if (!given.starts_with('/')) given = caller.cwd + "/" + given;
  Result<Traced> traced = trace(given);
  const std::string path = traced ? traced->path : given;
  std::string text = path + (traced ? "" : " (does not exist)") + ": ";
  const std::string layers = plan.view && plan.landlock ? "the view and Landlock"
                             : plan.view                ? "the view"
                                                        : "Landlock";

  const Place* rule = most_specific(plan.layout.places, path);
  const PrivateDir* covered = nullptr;
  for (const PrivateDir& dir : plan.layout.private_dirs)
    if (is_below(path, dir.inside) && (rule == nullptr || dir.inside.size() > rule->inside.size()))
      covered = &dir;
  if (covered != nullptr)
    return text + "not shown. " + covered->inside +
           " is an empty private folder inside, made by the view; "
           "--extra-read=" +
           path + " would show this one.\n";
  if (rule == nullptr && !plan.layout.whole_root)
    return text + "not shown. No rule grants it, kept by " + layers + "; --extra-read=" + path +
           " would allow reading, --extra-write=" + path + " writing.\n";
  const Access access = rule != nullptr             ? rule->access
                        : plan.layout.root_writable ? Access::write
                                                    : Access::read;
  const std::string from = rule != nullptr ? rule->path + " (" + rule->from + ")" : "/ (profile)";
  switch (access) {
    case Access::write:
      return text + "can be read and written, by the grant of " + from + "; --hide=" + path +
             " or --protect=" + path + " would take it away.\n";
    case Access::read:
      return text + "can be read and not written, by the grant of " + from + ", kept by " + layers +
             "; --extra-write=" + path + " would allow writing, --hide=" + path +
             " would hide it.\n";
    case Access::hide:
      return text + "hidden by " + from + ", kept by the view; leave that rule out to show it.\n";
    case Access::protect:
      return text + "can be read and not changed, protected by " + from +
             ", kept by the view; leave that rule out to allow changes.\n";
  }
  return text;
}

}  // namespace belljar
