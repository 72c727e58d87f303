#include "plan/promises.h"

#include "plan/refusal.h"

namespace belljar {
namespace {

constexpr const char* kGetNamespaces =
    "allow user namespaces for belljar (belljar doctor shows how), or run it as root";

constexpr const char* kGetCgroup =
    "delegate a cgroup: systemd-run --user --scope -p Delegate=yes belljar …";

constexpr const char* kOnlyOurs = "nothing need be done: no guest's code runs in this jar";

// Says for each promise what keeps it, and what is missing.
class Judge {
 public:
  Judge(Plan& plan, const Host& host)
      : plan_(plan), host_(host), policy_(plan.policy), warm_(plan.role == Role::warm) {}

  void files() {
    if (policy_.need(Promise::files) == Need::unasked) return;
    std::vector<std::string> layers;
    if (plan_.view) layers.emplace_back("view");
    if (plan_.landlock) layers.emplace_back("landlock");
    if (plan_.makes_connects() && plan_.landlock) layers.emplace_back("supervised connects");
    if (layers.empty())
      lose(Promise::files, true, "there are neither mounts of our own nor Landlock",
           kGetNamespaces);
    keep(Promise::files, std::move(layers));
    if (warm_) {
      lose(Promise::files, false,
           "there is no Landlock behind the mounts, since what is forked here for a jar would "
           "bring it along into that jar, which has its own",
           kOnlyOurs);
    } else if (plan_.view && !plan_.landlock) {
      lose(Promise::files, false,
           std::string(host_.landlock.abi == 1
                           ? "Landlock ABI 1 would stop renames between folders, so it is off"
                           : "there is no Landlock behind the mounts") +
               ": what standard input and output lead to can be opened again in another way",
           "boot with lsm=landlock,… or a newer kernel");
    }
    if (plan_.view && host_.identity.root && !host_.view.idmap) {
      std::string what = "your files cannot be shown as the guest's own (" +
                         host_.view.why_no_idmap +
                         "), so it may use them only as far as everybody may";
      plan_.warnings.push_back(what);
      lose(Promise::files, false, std::move(what),
           "a file system that can be idmapped, or run belljar as an ordinary user");
    }
    if (plan_.view || !plan_.landlock) return;
    if (plan_.landlock->abi < 3)
      lose(Promise::files, true, "Landlock before ABI 3 does not stop a file from being emptied",
           kGetNamespaces);
    if (!plan_.makes_connects() && !plan_.sockets_are_granted())
      lose(Promise::files, true,
           "Landlock does not stop calls to Unix sockets outside, such as those of Docker, systemd "
           "and the ssh agent, which run programs for who calls",
           kGetNamespaces);
    lose(Promise::files, false,
         "Landlock stops neither stat, nor changes of mode, owner, times and attributes outside, "
         "nor the use of a device file in a folder that is granted",
         kGetNamespaces);
    if (!plan_.outside_proc && !plan_.layout.whole_root)
      plan_.warnings.emplace_back(
          "without mounts of its own the guest has no /proc and no shared memory");
    if (plan_.outside_proc && !plan_.layout.whole_root)
      lose(Promise::files, false, "/dev/shm is the host's, and can be written", kGetNamespaces);
  }

  void exceptions() {
    if (plan_.layout.lost_exceptions) {
      lose(Promise::exceptions, true, "hide and protect need mounts of our own", kGetNamespaces);
      return;
    }
    const std::string& own = plan_.layout.shown_own;
    if (!own.empty() && policy_.need(Promise::exceptions) != Need::unasked)
      lose(Promise::exceptions, true,
           own +
               " is belljar's own, lies in what is granted, and only mounts of our own can hide it",
           std::string("grant less, or ") + kGetNamespaces);
    if (plan_.view && policy_.need(Promise::exceptions) != Need::unasked)
      keep(Promise::exceptions, {"view"});
  }

  void network() {
    if (policy_.network == Network::full) return;
    std::vector<std::string> layers;
    if (plan_.net) layers.emplace_back("network namespace");
    const bool filtered = plan_.seccomp && !warm_;
    if (policy_.network == Network::none) {
      if (filtered) layers.emplace_back("seccomp");
      if (plan_.landlock && plan_.landlock->handled_net != 0) layers.emplace_back("landlock");
    }
    if (policy_.network == Network::hosts) return network_by_name(std::move(layers));
    const bool kept = plan_.net || (policy_.network == Network::none && filtered);
    if (!kept)
      lose(Promise::network, true,
           "network = \"" + std::string(name(policy_.network)) + "\" needs a network namespace",
           std::string(kGetNamespaces) + "; network = \"none\" needs only seccomp");
    else if (!plan_.net)
      lose(Promise::network, false, "there is no network namespace behind the filter",
           kGetNamespaces);
    if (kept) keep(Promise::network, std::move(layers));
  }

  void network_by_name(std::vector<std::string> layers) {
    if (!plan_.net) {
      lose(Promise::network, true, "a network by name needs a network namespace", kGetNamespaces);
    } else if (!plan_.notify) {
      lose(Promise::network, true, "a network by name needs seccomp notifications",
           "Linux 5.6 or newer with CONFIG_SECCOMP_FILTER, and no other supervisor that has them");
    } else if (!plan_.view) {
      lose(Promise::network, true, "a network by name needs a resolv.conf of the jar's own",
           kGetNamespaces);
    } else {
      layers.emplace_back("broker");
      keep(Promise::network, std::move(layers));
    }
  }

  void processes() {
    if (policy_.need(Promise::processes) == Need::unasked) return;
    const bool scoped = plan_.landlock && plan_.landlock->scoped != 0;
    if (plan_.pid_namespace && host_.view.proc) {
      std::vector<std::string> layers{"pid namespace"};
      if (scoped) layers.emplace_back("landlock scope");
      keep(Promise::processes, std::move(layers));
    } else if (plan_.pid_namespace) {
      lose(Promise::processes, true,
           "a new /proc cannot be mounted here (" + host_.view.why_no_proc +
               "), so the guest sees the host's",
           "run outside the container, or give it an unmasked /proc");
    } else if (scoped && plan_.seccomp && !plan_.outside_proc) {
      keep(Promise::processes, {"landlock scope", "seccomp"});
    } else {
      lose(Promise::processes, true,
           scoped ? "the guest sees the host's /proc"
                  : "the guest can see and signal the caller's processes, and outlive its end",
           kGetNamespaces);
    }
    if (!plan_.pid_namespace)
      lose(Promise::processes, false,
           std::string("System V memory of the host can be reached, and ") +
               (plan_.seccomp ? "" : "limits, priority and ") +
               "CPUs of the caller's processes changed",
           kGetNamespaces);
    if (host_.rlimit.core_dumps == rlimit::CoreDumps::program)
      lose(Promise::processes, false,
           "a crash inside runs the host's program for core dumps (kernel.core_pattern), since "
           "the limit on core files is 0 here and cannot be raised",
           "start belljar where the hard limit is at least 1 (ulimit -H -c unlimited)");
    if (host_.rlimit.core_dumps == rlimit::CoreDumps::service)
      lose(Promise::processes, false,
           "the host's service for core dumps (kernel.core_pattern) hears of a crash inside; the "
           "kernel sends it no memory",
           "a core_pattern that is a file or a program");
    // The network namespace also has the abstract unix sockets to itself.
    if (!plan_.net && !scoped && !plan_.makes_connects())
      lose(Promise::processes, false, "abstract unix sockets of the host can be reached",
           "Linux 6.12 (Landlock ABI 6), or a network mode other than full");
  }

  void environment() {
    if (policy_.need(Promise::environment) == Need::unasked) return;
    // Landlock stops looking into processes outside its domain. Without it, and without a /proc of
    // our own, nothing keeps a guest from the host's, granted or not.
    const bool readable = !plan_.landlock && !(plan_.view && host_.view.proc);
    if (readable)
      lose(Promise::environment, true, "the caller's variables can be read in the host's /proc",
           kGetNamespaces);
    else
      keep(Promise::environment, {"env scrub"});
  }

  void limits() {
    const Limits& limits = policy_.limits;
    if (policy_.need(Promise::limits) == Need::unasked) return;
    const bool asked =
        limits.memory_mb || limits.cpu_secs || limits.procs || limits.open_fds || limits.file_sz_mb;
    if (!asked) return;
    std::vector<std::string> layers;
    if (plan_.cgroup) layers.emplace_back("cgroup");
    layers.emplace_back("rlimits");
    if (plan_.watchdog) layers.emplace_back("watchdog");
    const bool summed = plan_.cgroup || plan_.watchdog || (!limits.memory_mb && !limits.cpu_secs);
    const bool each_cpu = limits.cpu_secs && !limits.cpu_renews;
    if (!summed && (limits.memory_mb || each_cpu))
      lose(Promise::limits, true,
           std::string(!limits.memory_mb ? "CPU time is"
                       : !each_cpu       ? "memory is"
                                         : "memory and CPU time are") +
               " limited for each process, but not for all of them together" +
               (limits.memory_mb ? ", nor what they share or keep in files of /tmp and /dev/shm"
                                 : "") +
               " (" + host_.cgroup.why_not + ")",
           kGetCgroup);
    if (summed) keep(Promise::limits, std::move(layers));
    if (!summed && limits.cpu_secs && limits.cpu_renews)
      lose(Promise::limits, true, "nothing counts the CPU time of a call", kGetCgroup);
    const bool own_account =
        host_.identity.root || (plan_.identity && plan_.identity->user_namespace);
    if (!own_account)
      lose(Promise::limits, false,
           "what is counted for a user, such as processes and watches of files, is counted "
           "together with the caller's own",
           kGetNamespaces);
    else if (!host_.identity.root && !host_.view.proc)
      lose(Promise::limits, false,
           "watches of files are counted together with the caller's own, since nothing can be set "
           "in /proc here",
           "run outside the container, or give it an unmasked /proc");
    if (!plan_.watchdog) return;
    if (limits.memory_mb && !plan_.no_memfd)
      lose(Promise::limits, false,
           "memory that a guest keeps in memfds, or in shared mappings it has unmapped in part, is "
           "not counted",
           kGetCgroup);
    if (limits.memory_mb)
      lose(Promise::limits, false,
           "memory that the kernel itself keeps for a guest, as in the buffers of its sockets, is "
           "not counted",
           kGetCgroup);
    if (limits.cpu_secs)
      lose(Promise::limits, false,
           "CPU time of short-lived processes that nobody waits for is counted only in part",
           kGetCgroup);
  }

  void syscalls() {
    if (policy_.need(Promise::syscalls) == Need::unasked) return;
    if (plan_.seccomp) {
      keep(Promise::syscalls, {"seccomp"});
      if (warm_)
        lose(Promise::syscalls, false,
             "setns is allowed, by which what is forked here joins its jar, and so is what any jar "
             "allows: each has its own filter on top",
             kOnlyOurs);
    } else {
      lose(Promise::syscalls, true, "seccomp filters cannot be installed",
           "a kernel with CONFIG_SECCOMP_FILTER");
    }
  }

 private:
  void keep(Promise promise, std::vector<std::string> layers) {
    if (!layers.empty()) plan_.kept.push_back({promise, std::move(layers)});
  }
  void lose(Promise promise, bool broken, std::string what, std::string hint) {
    plan_.losses.push_back({promise, broken, std::move(what), std::move(hint)});
  }

  Plan& plan_;
  const Host& host_;
  const Policy& policy_;
  const bool warm_;
};

}  // namespace

void judge_promises(Plan& plan, const Host& host) {
  Judge judge(plan, host);
  judge.files();
  judge.exceptions();
  judge.network();
  judge.processes();
  judge.environment();
  judge.limits();
  judge.syscalls();
}

Status refuse_lost_promises(const Plan& plan) {
  return refuse_lost_promises(plan.policy, plan.losses);
}

}  // namespace belljar
