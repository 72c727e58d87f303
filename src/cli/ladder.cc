// docs hosts: the table of docs/hosts.md that says what each profile keeps, loses
// and refuses on poorer hosts. Made by planning for hosts that are only supposed.
#include "cli/ladder.h"

#include <algorithm>

#include "plan/plan.h"
#include "plan/supposed.h"
#include "policy/profiles.h"

namespace belljar::cli {
namespace {

struct Supposed {
  const char* name;
  Host host;
};

Host full_host() { return supposed_host("/sys/fs/cgroup"); }

template <class F>
Supposed without(const char* name, F&& take_away) {
  Supposed supposed{name, full_host()};
  take_away(supposed.host);
  return supposed;
}

// From the richest down. Landlock's ABI is 2 in Linux 6.1, 4 in 6.8, 6 in 6.12.
std::vector<Supposed> hosts() {
  auto no_namespaces = [](Host& host) {
    host.identity.user_namespaces = false;
    host.view.idmap = false;
    host.cgroup.parent.clear();
  };
  return {
      without("Linux 6.12, everything", [](Host&) {}),
      without("no cgroup delegated", [](Host& host) { host.cgroup.parent.clear(); }),
      without("Linux 6.1 to 6.11", [](Host& host) { host.landlock.abi = 2; }),
      without("no Landlock", [](Host& host) { host.landlock.abi = 0; }),
      without("container: no new `/proc`, no cgroup",
              [](Host& host) {
                host.view.proc = false;
                host.cgroup.parent.clear();
              }),
      without("no user namespaces, Linux 6.12", [&](Host& host) { no_namespaces(host); }),
      without("no user namespaces, Linux 6.8 (Ubuntu 24.04 as installed)",
              [&](Host& host) {
                no_namespaces(host);
                host.landlock.abi = 4;
              }),
      without("no user namespaces, Linux 6.1",
              [&](Host& host) {
                no_namespaces(host);
                host.landlock.abi = 2;
              }),
      without("neither user namespaces nor Landlock",
              [&](Host& host) {
                no_namespaces(host);
                host.landlock.abi = 0;
              }),
      without("root, everything", [](Host& host) { host.identity.root = true; }),
      without("root, no user namespaces",
              [&](Host& host) {
                host.identity.root = true;
                host.identity.user_namespaces = false;
                host.view.idmap = false;
              }),
      without("root of a container, without CAP_SYS_ADMIN",
              [](Host& host) {
                host.identity.root = true;
                host.identity.powerless = true;
              }),
      without("no seccomp", [](Host& host) { host.seccomp.filters = false; }),
  };
}

// The promises of a plan that lost something, by how bad it is.
struct Losses {
  std::vector<std::string> refused, lost, shallower;
};

void add_once(std::vector<std::string>& names, Promise promise) {
  std::string word(name(promise));
  if (std::ranges::find(names, word) == names.end()) names.push_back(std::move(word));
}

Losses losses_of(const Plan& plan) {
  Losses losses;
  for (const Loss& loss : plan.losses) {
    const bool is_required = plan.policy.need(loss.promise) == Need::required;
    if (loss.broken) add_once(is_required ? losses.refused : losses.lost, loss.promise);
  }
  for (const Loss& loss : plan.losses) {
    const std::string word(name(loss.promise));
    const bool worse = std::ranges::find(losses.refused, word) != losses.refused.end() ||
                       std::ranges::find(losses.lost, word) != losses.lost.end();
    if (!loss.broken && !worse) add_once(losses.shallower, loss.promise);
  }
  return losses;
}

void add_list(std::string& text, std::string_view heading, const std::vector<std::string>& names) {
  if (names.empty()) return;
  text.append(text.empty() ? "" : "; ").append(heading);
  for (const std::string& name : names) text.append(&name == &names[0] ? " " : ", ").append(name);
}

std::string cell(const Profile& profile, const Host& host) {
  Settings settings;
  settings.profile = std::string(profile.name);
  const Caller caller{.home = "/var", .cwd = "/srv", .environment = {}};
  Result<Policy> policy = make_policy(settings, {.cwd = caller.cwd, .home = caller.home});
  if (!policy) return policy.error().message();
  Result<Plan> plan = resolve(*policy, host, caller, Purpose::explain);
  if (!plan) return "**refused**";
  Losses losses = losses_of(*plan);
  std::string text;
  add_list(text, "**refused**:", losses.refused);
  add_list(text, "lost:", losses.lost);
  add_list(text, "less depth:", losses.shallower);
  return text.empty() ? "all" : text;
}

}  // namespace

std::string ladder_table() {
  std::string text = "| host |";
  std::string line = "\n|---|";
  for (const Profile& profile : profiles()) {
    text.append(" `").append(profile.name).append("` |");
    line += "---|";
  }
  text += line + "\n";
  for (const Supposed& supposed : hosts()) {
    text.append("| ").append(supposed.name).append(" |");
    for (const Profile& profile : profiles()) text += " " + cell(profile, supposed.host) + " |";
    text += "\n";
  }
  return text;
}

}  // namespace belljar::cli
