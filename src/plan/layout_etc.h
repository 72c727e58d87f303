// The texts of /etc that a guest finds instead of the host's.
#pragma once

#include "plan/layout.h"

namespace belljar {

void add_minimal_etc(Layout& layout, bool is_root);
void lead_names_to_broker(Layout& layout, Reads reads);
void add_jar_user(Layout& layout);

}  // namespace belljar
