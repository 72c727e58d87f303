// identity: which user the guest is.
//
// An ordinary caller is mapped to itself in a new user namespace, in which the
// set-up has the capabilities it needs and the guest has none. When the caller
// is root the guest never is, inside or outside: each jar gets a host uid of its
// own, kFirstJarUid plus the pid of the jar's init, which no other live jar can
// have. Does not do: dropping an ordinary caller's supplementary groups, which
// the kernel refuses without privilege. Needs Linux 3.8.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/result.h"
#include "belljar/policy.h"

namespace belljar {
class Child;
}

namespace belljar::identity {

// 0x70000000: above every range that distributions and systemd hand out, with
// room for the largest pid (2^22) before 2^31.
inline constexpr uid_t kFirstJarUid = 1879048192;

struct Support {
  bool root = false;       // the caller is
  bool powerless = false;  // root, but without CAP_SYS_ADMIN, as in a container
  bool user_namespaces = true;
  std::string why_not;  // when they are missing
};

struct Plan {
  bool root = false;            // the caller is root: the parent names the jar's uid
  bool user_namespace = false;  // else root changes its uid for good
  bool few_watches = true;      // the jar gets its own, small share of inotify instances
  uid_t uid = 0;                // the caller's
  gid_t gid = 0;
  std::string uid_map;  // what an ordinary caller's child writes for itself
  std::string gid_map;
};

Support probe();
Support assume();  // without trying
// nullopt: the guest stays who the caller is, with no namespace of its own.
Result<std::optional<Plan>> resolve(const Support& host);
// For a jar beneath which others are born, so that its processes can join them: its limits
// would be all of theirs together, and where root names the uid of each, what is above them is
// the caller's own user namespace.
void stand_above_other_jars(Plan& plan);
// The parent's part, where the caller is root: the jar's uid, from its init's pid.
Status map(const Plan& plan, pid_t init, uid_t jar_uid);
void apply(const Plan& plan, uid_t jar_uid, const Child& child) noexcept;

}  // namespace belljar::identity
