// doctor: what this host can enforce, found by trying it, and how to get the rest.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>

#include <cstdio>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "cli/flags.h"
#include "plan/findings.h"
#include "policy/profiles.h"

namespace belljar::cli {
namespace {

bool restricted_by_apparmor() {
  std::FILE* file = std::fopen("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "re");
  if (file == nullptr) return false;
  const int value = std::fgetc(file);
  std::fclose(file);
  return value == '1';
}

bool in_a_chroot() {
  struct statx root{};
  struct stat first{};  // of the first process, which only root may look at
  if (::statx(AT_FDCWD, "/", 0, STATX_INO, &root) != 0) return false;
  const bool knows_mounts = (root.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0;  // Linux 5.8
  if (knows_mounts && (root.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0) return true;
  return ::stat("/proc/1/root/.", &first) == 0 && first.st_ino != root.stx_ino;
}

std::string how_to_get_namespaces() {
  if (in_a_chroot())
    return "This seems to be a chroot, in which the kernel makes no user namespaces. Start belljar "
           "outside of it,\n"
           "or enter the tree with something that makes it a root of its own (pivot_root): "
           "systemd-nspawn, bwrap,\n"
           "a container.\n";
  if (restricted_by_apparmor())
    return "AppArmor restricts user namespaces here (Ubuntu's default). Give belljar its own "
           "profile: save\n"
           "this as /etc/apparmor.d/belljar and run: sudo apparmor_parser -r "
           "/etc/apparmor.d/belljar\n\n"
           "  abi <abi/4.0>,\n  include <tunables/global>\n  profile belljar "
           "/usr/{,local/}bin/belljar flags=(unconfined) {\n"
           "    userns,\n  }\n";
  return "User namespaces may be switched off: see sysctl user.max_user_namespaces and\n"
         "kernel.unprivileged_userns_clone. Inside a container they need its runtime's "
         "permission.\n";
}

Result<int> run_doctor(const Arguments& arguments) {
  bool as_json = false;
  std::string verify;
  Parsed parsed = TRY(parse_flags(
      arguments, {{.name = "json", .seen = &as_json}, {.name = "verify", .value = &verify}}));
  if (!parsed.rest.empty()) return fail("doctor takes no argument " + parsed.rest[0]);
  if (parsed.settings != Settings{})
    return fail("doctor takes no flags of a policy", 0, "belljar explain does");
  if (!verify.empty()) return verify_profile(verify, as_json ? As::json : As::text);
  const Caller caller = this_caller();
  const Host host = probe_host(caller);
  if (as_json) {
    std::fputs(pretty(doctor_json(host, caller)).c_str(), stdout);
    return 0;
  }
  std::printf("What this host can enforce, found by trying it:\n\n");
  for (const Finding& f : findings(host))
    std::printf("  %s %-20s %s%s%s\n",
                styled(f.there ? "yes " : "NO  ", f.there ? Style::good : Style::bad, STDOUT_FILENO)
                    .c_str(),
                f.name, f.gives, f.detail.empty() ? "" : ": ", f.detail.c_str());
  std::printf("\nProfiles here:\n\n");
  for (const Profile& profile : profiles())
    std::printf("  %-20s %s\n", std::string(profile.name).c_str(),
                profile_verdict(profile, host, caller).c_str());
  if (!host.identity.user_namespaces) std::printf("\n%s", how_to_get_namespaces().c_str());
  if (host.landlock.abi == 0)
    std::printf(
        "\nLandlock: needs Linux 5.13 and \"landlock\" in the kernel's lsm= list (cat "
        "/sys/kernel/security/lsm).\n");
  if (host.cgroup.parent.empty())
    std::printf(
        "\ncgroup v2: as an ordinary user, systemd delegates one with\n"
        "  systemd-run --user --scope -p Delegate=yes belljar exec …\n");
  return 0;
}

}  // namespace

int doctor(const Arguments& arguments) { return report(run_doctor(arguments)); }

}  // namespace belljar::cli
