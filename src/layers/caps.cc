#include "layers/caps.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "base/child.h"

namespace belljar::caps {

void apply(const Child& child) noexcept {
  child.must(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "caps: no_new_privs");
  // Kernels before 4.3 have no ambient set; then there is nothing to clear.
  child.must(::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0 || errno == EINVAL,
             "caps: clear ambient");
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2] = {};
  child.must(::syscall(SYS_capset, &header, data) == 0, "caps: capset");

  data[0].permitted = data[1].permitted = 1;  // so that a capget that fills nothing is seen
  child.must(::syscall(SYS_capget, &header, data) == 0, "caps: capget");
  std::uint32_t left = 0;
  for (const auto& half : data) left |= half.effective | half.permitted | half.inheritable;
  if (left != 0) child.die(EPERM, "caps: capabilities are still there");
}

}  // namespace belljar::caps
