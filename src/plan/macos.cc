#include "plan/macos.h"

#include <algorithm>

#include "layers/env.h"
#include "policy/validate.h"

namespace belljar {
namespace {

constexpr const char* kElsewhere = "a virtual machine with Linux has it";

// Says for each promise whether Seatbelt keeps it.
class MacJudge {
 public:
  explicit MacJudge(MacPlan& plan) : plan_(plan), policy_(plan.policy) {}

  void files() {
    if (policy_.need(Promise::files) == Need::unasked) return;
    keep(Promise::files, "seatbelt");
    lose(Promise::files, false,
         "names in / and the attributes of the folders above what is granted can be seen",
         kElsewhere);
  }

  void exceptions() {
    if (policy_.need(Promise::exceptions) == Need::unasked) return;
    keep(Promise::exceptions, "seatbelt");
    const bool asked = std::ranges::any_of(plan_.layout.places, [](const Place& place) {
      return (place.access == Access::hide && place.from != "profile") ||
             place.access == Access::protect;
    });
    const Files& files = policy_.files;
    if (asked || !files.hide_globs.empty() || !files.protect_globs.empty())
      lose(Promise::exceptions, false,
           "a file that has a second name (a hard link) in what is granted is hidden or protected "
           "by the one name only",
           "name the other too");
  }

  void network() {
    switch (policy_.network) {
      case Network::full:
        return;
      case Network::none:
        return keep(Promise::network, "seatbelt");
      case Network::loopback: {
        keep(Promise::network, "seatbelt");
        const char* what =
            "the loopback is the machine's own: its services, and a proxy among them, can be "
            "reached there";
        plan_.warnings.emplace_back(what);
        return lose(Promise::network, false, what, "network = \"none\"");
      }
      case Network::hosts:
        return lose(Promise::network, true,
                    "Seatbelt knows no names of hosts, and a proxy on this machine that would is "
                    "not there yet, so nothing can be reached",
                    "network = \"none\" or \"loopback\"; on Linux names work");
    }
  }

  void processes() {
    if (policy_.need(Promise::processes) == Need::unasked) return;
    keep(Promise::processes, "seatbelt");
    lose(Promise::processes, false,
         "a process that leaves the guest's process group may outlive it, confined as before",
         kElsewhere);
    lose(Promise::processes, false,
         "a guest that was given the terminal can type into it (TIOCSTI)", "redirect its input");
  }

  void environment() {
    if (policy_.need(Promise::environment) != Need::unasked)
      keep(Promise::environment, "env scrub");
  }

  void limits() {
    const Limits& limits = policy_.limits;
    if (policy_.need(Promise::limits) == Need::unasked) return;
    if (limits.memory_mb || limits.cpu_secs)
      lose(Promise::limits, true,
           "memory and the CPU time of all processes together are looked at now and then by the "
           "supervisor, in the guest's process group only, and not limited by the kernel",
           kElsewhere);
    if (limits.procs)
      lose(Promise::limits, false, "the number of processes is counted with all others of yours",
           kElsewhere);
    const bool kept = !limits.memory_mb && !limits.cpu_secs;
    if (kept && (limits.procs || limits.open_fds || limits.file_sz_mb))
      keep(Promise::limits, "rlimits");
  }

  void syscalls() {
    if (policy_.need(Promise::syscalls) == Need::unasked) return;
    keep(Promise::syscalls, "seatbelt");
    lose(Promise::syscalls, false,
         "Mach services, IOKit, sysctl, mounts and system sockets are denied; system calls are "
         "not filtered by number",
         kElsewhere);
  }

 private:
  void keep(Promise promise, const char* layer) { plan_.kept.push_back({promise, {layer}}); }
  void lose(Promise promise, bool broken, std::string what, std::string hint) {
    plan_.losses.push_back({promise, broken, std::move(what), std::move(hint)});
  }

  MacPlan& plan_;
  const Policy& policy_;
};

}  // namespace

Result<MacPlan> resolve_for_mac(const Policy& policy, const Caller& caller,
                                const seatbelt::Machine& machine) {
  TRY(validate(policy));
  MacPlan plan;
  plan.policy = policy;
  // No Mac limits memory, and `restricted` is for Macs too. (`public-bot` is not: there it
  // would be a lie.)
  if (policy.profile == "restricted" && policy.mode < Mode::on)
    plan.policy.set_need(Promise::limits, Need::best_effort);
  MacFiles files = TRY(make_mac_layout(policy, caller, machine));
  plan.layout = std::move(files.layout);
  plan.seatbelt = TRY(seatbelt::resolve(policy, plan.layout, machine));
  plan.seatbelt.scratch = std::move(files.scratch.folder);
  plan.seatbelt.folders = std::move(files.scratch.folders);
  plan.seatbelt.links = std::move(files.scratch.links);
  plan.environment = env::resolve(policy, caller.environment,
                                  {plan.layout.home, plan.layout.tmp, plan.layout.cache});
  plan.warnings = plan.layout.warnings;
  MacJudge judge(plan);
  judge.files();
  judge.exceptions();
  judge.network();
  judge.processes();
  judge.environment();
  judge.limits();
  judge.syscalls();
  return plan;
}

}  // namespace belljar
