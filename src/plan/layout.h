// From the policy's files to the paths of this host.
#pragma once

#include "layers/layout.h"
#include "plan/plan.h"

namespace belljar {

struct LayoutOptions {
  bool root = false;            // the caller is root: its places are shown as the jar's
  bool view = true;             // the guest will have a root of its own
  bool outside_proc = false;    // without a view: the host's /proc may be read
  bool show_as_owned = true;    // as root, the caller's places can be shown as the jar's
  bool no_shared_zero = false;  // /dev/zero must not be a way to shared memory
  bool make_folders = true;     // make what is to be writable and missing
};

Result<Layout> make_layout(const Policy& policy, const Caller& caller, LayoutOptions options);

}  // namespace belljar
