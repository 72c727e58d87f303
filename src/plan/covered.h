// Places that need no mount of their own: another shows the same there already.
#pragma once

#include "layers/layout.h"

namespace belljar {

void drop_covered(Layout& layout);

}  // namespace belljar
