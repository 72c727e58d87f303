// Where a tree is shown at another path than its own (--home=DIR, --tmp=DIR), what
// else lies below that path needs something to be mounted on.
#pragma once

#include "base/result.h"
#include "layers/layout.h"

namespace belljar {

enum class MissingMountPoints { make, leave };

// Makes the empty folders and files that are missing in a home or /tmp of the person's
// own; they stay there, since a jar beside this one may be using them. Refuses what
// cannot be mounted. Every place must have been opened.
Status make_mount_points(const Layout& layout, MissingMountPoints missing);

}  // namespace belljar
