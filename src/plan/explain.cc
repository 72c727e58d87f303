#include "plan/explain.h"

#include <arpa/inet.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>

#include "base/json.h"
#include "base/printable.h"
#include "plan/explain_network.h"
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

namespace {

bool exists(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0;
}

std::string absolute(std::string_view text, const Caller& caller) {
  std::string path(text);
  if (path == "~" || path.starts_with("~/")) path = caller.home + path.substr(1);
  return path.starts_with('/') ? path : caller.cwd + "/" + path;
}

bool is_port(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// The host that is meant, if it is no path: what exists is a path, whatever it looks like.
std::optional<std::string> host_in(std::string_view text, const Caller& caller) {
  if (std::size_t scheme = text.find("://"); scheme != text.npos && scheme > 0) {
    std::string_view rest = text.substr(scheme + 3);
    rest = rest.substr(0, rest.find_first_of("/?#"));
    if (std::size_t user = rest.rfind('@'); user != rest.npos) rest.remove_prefix(user + 1);
    return std::string(rest);
  }
  const bool path = text.empty() || text.starts_with('/') || text.starts_with('.') ||
                    text.starts_with('~') || text.find('/') != text.npos;
  if (path || exists(absolute(text, caller))) return std::nullopt;
  in6_addr ignored{};
  const std::size_t colon = text.rfind(':');
  const bool host = text == "localhost" || text.find('.') != text.npos || text.starts_with('[') ||
                    (colon != text.npos && colon > 0 && is_port(text.substr(colon + 1))) ||
                    ::inet_pton(AF_INET6, std::string(text).c_str(), &ignored) == 1;
  return host ? std::optional<std::string>(text) : std::nullopt;
}

// The deepest place that the guest sees at a path of its own, or above it.
const Place* seen_at(const Plan& plan, std::string_view inside) {
  const Place* seen = nullptr;
  for (const Place& place : plan.layout.places)
    if (is_below(inside, place.inside) &&
        (seen == nullptr || place.inside.size() >= seen->inside.size()))
      seen = &place;
  for (const PrivateDir& dir : plan.layout.private_dirs)
    if (seen != nullptr && is_below(inside, dir.inside) && dir.inside.size() > seen->inside.size())
      return nullptr;
  return seen;
}

// What a grant gives is not more than the file's own mode gives to the guest: it is never
// root, and where root starts it, only what is shown as its own counts as its own.
std::string_view permissions(const Traced& traced, const Place* rule) {
  const bool root = ::geteuid() == 0;
  const bool own = rule != nullptr && rule->owned;
  const bool wanted_write = rule == nullptr || rule->access == Access::write;
  bool allowed = true;
  if (!root)
    allowed = ::access(traced.path.c_str(), wanted_write ? R_OK | W_OK : R_OK) == 0;
  else if (!own)
    allowed = (traced.st.st_mode & (wanted_write ? 06U : 04U)) == (wanted_write ? 06U : 04U);
  return allowed ? "" : " as far as its own permissions allow";
}

// What the jar has of its own, and no grant can change.
std::optional<std::string> made_for_the_guest(const Plan& plan, const std::string& path) {
  if (!plan.view) return std::nullopt;
  if (is_below(path, "/proc") && !plan.outside_proc)
    return "the guest's own /proc, which shows the processes of the jar and no others; kept by "
           "the pid namespace.\n";
  if (is_below(path, "/proc"))
    return "the host's /proc is shown, since no new one can be mounted here (belljar doctor).\n";
  if (is_below(path, "/dev") && plan.layout.own_dev && seen_at(plan, path) == nullptr)
    return "not shown. The guest has a /dev of its own, with null, zero, full, random, urandom, "
           "tty, shm and pts.\n";
  return std::nullopt;
}

std::string file_layers(const Plan& plan) {
  if (!plan.view) return "Landlock";
  return plan.landlock ? "the view and Landlock" : "the view";
}

std::string why_granted(const Plan& plan, const Place* rule, const std::string& path,
                        std::string_view permissions) {
  const std::string layers = file_layers(plan);
  const Access access = rule != nullptr             ? rule->access
                        : plan.layout.root_writable ? Access::write
                                                    : Access::read;
  const std::string from = rule != nullptr ? rule->path + " (" + rule->from + ")" : "/ (profile)";
  const std::string allowed(permissions);
  switch (access) {
    case Access::write:
      return "can be read and written" + allowed + ", by the grant of " + from +
             "; --hide=" + path + " or --protect=" + path + " would take it away.\n";
    case Access::read:
      return "can be read" + allowed + " and not written, by the grant of " + from + ", kept by " +
             layers + "; --extra-write=" + path + " would allow writing, --hide=" + path +
             " would hide it.\n";
    case Access::hide:
      return "hidden by " + from + ", kept by the view; leave that rule out to show it.\n";
    case Access::protect:
      return "can be read" + allowed + " and not changed, protected by " + from +
             ", kept by the view; leave that rule out to allow changes.\n";
  }
  return {};
}

std::string why_path(const Plan& plan, const std::string& given) {
  // A path of the guest's own names, such as /workspace/x, means what is shown there.
  const Place* moved = seen_at(plan, given);
  std::string host_path = given;
  if (moved != nullptr && moved->inside != moved->path)
    host_path = moved->path + given.substr(moved->inside.size());
  else
    moved = nullptr;
  Result<Traced> traced = trace(host_path);
  const std::string path = traced ? traced->path : host_path;
  std::string text = path + (traced ? "" : " (does not exist)") + ": ";
  if (moved != nullptr) text = given + ", which is " + text;
  if (std::optional<std::string> own = made_for_the_guest(plan, path)) return text + *own;

  const Place* rule = nullptr;
  for (const Place& place : plan.layout.places)
    if (is_below(path, place.path) && (rule == nullptr || place.path.size() >= rule->path.size()))
      rule = &place;
  for (const PrivateDir& dir : plan.layout.private_dirs)
    if (is_below(path, dir.inside) && (rule == nullptr || dir.inside.size() > rule->inside.size()))
      return text + "not shown. " + dir.inside +
             " is a private folder inside, empty at the start and writable, made by the view; "
             "--extra-read=" +
             path + " would show this one.\n";
  if (rule == nullptr && !plan.layout.whole_root)
    return text + "not shown. No rule grants it, kept by " + file_layers(plan) +
           "; --extra-read=" + path + " would allow reading, --extra-write=" + path + " writing.\n";
  return text +
         why_granted(plan, rule, path, traced ? permissions(*traced, rule) : std::string_view());
}

}  // namespace

std::string explain_why(const Plan& plan, std::string_view path_or_host, const Caller& caller) {
  if (std::optional<std::string> host = host_in(path_or_host, caller))
    return explain_host(plan.policy, *host);
  return why_path(plan, absolute(path_or_host, caller));
}

}  // namespace belljar
