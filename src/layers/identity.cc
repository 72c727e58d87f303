#include "layers/identity.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/child.h"
#include "base/fd.h"
#include "base/probe.h"

namespace belljar::identity {
namespace {

// Of the 128 that a user has: enough for every watcher of a build.
constexpr char kMaxInotify[] = "32";
// Each keeps a kilobyte of the kernel's memory. Of older kernels a user has fewer in all.
constexpr char kMaxWatches[] = "65536";

bool write_proc(const char* path, const char* text, std::size_t size) noexcept {
  Fd file(::open(path, O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), text, size) == static_cast<ssize_t>(size);
}

bool has_admin() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2] = {};
  return ::syscall(SYS_capget, &header, data) == 0 &&
         (data[0].effective & (1U << CAP_SYS_ADMIN)) != 0;
}

std::string self_map(id_t id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; }

}  // namespace

Support probe() {
  // Ubuntu's AppArmor lets the clone pass and then takes the capabilities away,
  // so the probe does something that needs one.
  Tried tried = try_in_child([] {
    if (::syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWUTS) < 0) return errno;
    return ::sethostname("belljar", 7) == 0 ? 0 : errno;
  });
  Support support = assume();
  support.user_namespaces = tried.ok();
  support.why_not = tried.reason();
  return support;
}

Support assume() {
  const bool root = ::geteuid() == 0;
  return {.root = root, .powerless = root && !has_admin(), .user_namespaces = true, .why_not = {}};
}

Result<std::optional<Plan>> resolve(const Support& host) {
  if (host.powerless)
    return fail("root without CAP_SYS_ADMIN can neither mount nor give the guest another uid", 0,
                "run belljar as an ordinary user of this container");
  Plan plan{.root = host.root,
            .user_namespace = host.user_namespaces,
            .uid = ::geteuid(),
            .gid = ::getegid(),
            .uid_map = {},
            .gid_map = {}};
  if (!plan.root && !plan.user_namespace) return std::nullopt;
  plan.uid_map = self_map(plan.uid);
  plan.gid_map = self_map(plan.gid);
  return plan;
}

void stand_above_other_jars(Plan& plan) {
  plan.few_watches = false;
  if (plan.root) plan.user_namespace = false;
}

Status map(const Plan& plan, pid_t init, uid_t jar_uid) {
  if (!plan.root || !plan.user_namespace) return {};
  std::string proc = "/proc/" + std::to_string(init);
  std::string map = self_map(jar_uid);
  for (const char* file : {"/uid_map", "/gid_map"})
    if (!write_proc((proc + file).c_str(), map.c_str(), map.size()))
      return fail("identity: write " + proc + file, errno);
  return {};
}

void apply(const Plan& plan, uid_t jar_uid, const Child& child) noexcept {
  if (!plan.root) {
    // A namespace without CAP_SETGID outside may be mapped only once it has given
    // up setgroups: https://man7.org/linux/man-pages/man7/user_namespaces.7.html
    child.must(write_proc("/proc/self/setgroups", "deny", 4), "identity: deny setgroups");
    child.must(write_proc("/proc/self/uid_map", plan.uid_map.c_str(), plan.uid_map.size()),
               "identity: write uid_map");
    child.must(write_proc("/proc/self/gid_map", plan.gid_map.c_str(), plan.gid_map.size()),
               "identity: write gid_map");
    // The caller's processes and the jar's draw on one account, which a guest could use up.
    // If it cannot be written (a container's /proc/sys), it is as it was.
    if (plan.few_watches) {
      (void)write_proc("/proc/sys/user/max_inotify_instances", kMaxInotify, sizeof kMaxInotify - 1);
      (void)write_proc("/proc/sys/user/max_inotify_watches", kMaxWatches, sizeof kMaxWatches - 1);
    }
    return;
  }
  // Leaving uid 0 would clear the capabilities that the later steps still need.
  child.must(::prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) == 0,
             "identity: keep capabilities");
  child.must(::syscall(SYS_setgroups, 0, nullptr) == 0, "identity: setgroups");
  child.must(::syscall(SYS_setresgid, jar_uid, jar_uid, jar_uid) == 0, "identity: setresgid");
  child.must(::syscall(SYS_setresuid, jar_uid, jar_uid, jar_uid) == 0, "identity: setresuid");
}

}  // namespace belljar::identity
