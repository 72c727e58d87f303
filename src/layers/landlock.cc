#include "layers/landlock.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/child.h"
#include "base/uapi.h"

namespace belljar::landlock {
namespace {

constexpr std::uint64_t kRead =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;

// What may be done to a device node: no more than use it.
constexpr std::uint64_t kUse = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                               LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_TRUNCATE |
                               LANDLOCK_ACCESS_FS_IOCTL_DEV;

// The subset of rights that may be attached to a regular file.
constexpr std::uint64_t kFileRights = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                                      LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_TRUNCATE |
                                      LANDLOCK_ACCESS_FS_IOCTL_DEV;

// Every right the given ABI knows. A right we do not handle is a right the
// guest keeps, so this is the complete set and not the set we happen to grant.
constexpr std::uint64_t handled_by(int abi) {
  std::uint64_t all = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;  // ABI 1: bits 0..12
  if (abi >= 2) all |= LANDLOCK_ACCESS_FS_REFER;
  if (abi >= 3) all |= LANDLOCK_ACCESS_FS_TRUNCATE;
  if (abi >= 5) all |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
  return all;
}

std::size_t attribute_size(int abi) {
  if (abi >= 6) return sizeof(LandlockRuleset);
  return abi >= 4 ? 2 * sizeof(std::uint64_t) : sizeof(std::uint64_t);
}

std::uint64_t rights(const Place& place) {
  if (place.device) return kUse & kFileRights;
  std::uint64_t access = place.access == Access::write ? ~0ULL : kRead;
  return place.is_dir() ? access : access & kFileRights;
}

}  // namespace

Support probe() {
  long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return {.abi = abi < 0 ? 0 : static_cast<int>(abi)};
}

std::optional<Plan> resolve(const Policy& policy, const Layout& layout, const Support& host,
                            bool view) {
  if (host.abi < 1) return std::nullopt;
  // ABI 1 refuses every rename between folders; behind a view that is too dear.
  if (host.abi == 1 && view) return std::nullopt;
  Plan plan{.abi = host.abi, .handled_fs = handled_by(host.abi)};
  if (host.abi >= 4 && policy.network == Network::none)
    plan.handled_net = LANDLOCK_ACCESS_NET_BIND_TCP | LANDLOCK_ACCESS_NET_CONNECT_TCP;
  if (host.abi >= 6) plan.scoped = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | LANDLOCK_SCOPE_SIGNAL;

  auto add = [&](Rule rule) {
    rule.access &= plan.handled_fs;
    plan.rules.push_back(std::move(rule));
  };
  if (layout.whole_root)
    add({.fd = -1, .path = "/", .access = layout.root_writable ? ~0ULL : kRead});
  for (const Place& place : layout.places)
    if (place.access == Access::read || place.access == Access::write)
      add({.fd = place.fd.get(), .path = {}, .access = rights(place)});
  if (!view) return plan;

  if (!layout.whole_root) add({.fd = -1, .path = "/", .access = LANDLOCK_ACCESS_FS_READ_DIR});
  for (const PrivateDir& dir : layout.private_dirs)
    add({.fd = -1, .path = dir.inside, .access = ~0ULL});
  for (const Text& text : layout.texts)
    add({.fd = -1, .path = text.inside, .access = LANDLOCK_ACCESS_FS_READ_FILE});
  add({.fd = -1, .path = "/proc", .access = kRead | LANDLOCK_ACCESS_FS_WRITE_FILE});
  if (layout.own_dev) {
    add({.fd = -1, .path = "/dev/shm", .access = ~0ULL});
    add({.fd = -1, .path = "/dev/pts", .access = kUse});
  } else if (layout.whole_root) {
    add({.fd = -1, .path = "/dev", .access = kUse});
  }
  return plan;
}

Fd apply(const Plan& plan, int terminal_fd, const Child& child) noexcept {
  const LandlockRuleset attr{.handled_access_fs = plan.handled_fs,
                             .handled_access_net = plan.handled_net,
                             .scoped = plan.scoped};
  Fd ruleset(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attr, attribute_size(plan.abi), 0)));
  child.must(bool(ruleset), "landlock: create_ruleset");

  for (const Rule& rule : plan.rules) {
    Fd opened;
    if (rule.fd < 0) opened.reset(::open(rule.path.c_str(), O_PATH | O_CLOEXEC));
    const landlock_path_beneath_attr beneath{.allowed_access = rule.access,
                                             .parent_fd = rule.fd >= 0 ? rule.fd : opened.get()};
    child.must(::syscall(SYS_landlock_add_rule, ruleset.get(), LANDLOCK_RULE_PATH_BENEATH, &beneath,
                         0) == 0,
               "landlock: add_rule", rule.path.c_str());
  }
  if (terminal_fd >= 0) {
    const landlock_path_beneath_attr terminal{
        .allowed_access = kUse & kFileRights & plan.handled_fs, .parent_fd = terminal_fd};
    child.must(::syscall(SYS_landlock_add_rule, ruleset.get(), LANDLOCK_RULE_PATH_BENEATH,
                         &terminal, 0) == 0,
               "landlock: add the terminal");
  }
  // The kernel refuses restrict_self without this, as it does seccomp filters.
  child.must(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "landlock: no_new_privs");
  child.must(::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) == 0,
             "landlock: restrict_self");
  return ruleset;
}

}  // namespace belljar::landlock
