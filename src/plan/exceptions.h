// hide and protect: parts of granted trees that are taken away again.
#pragma once

#include <string>
#include <vector>

#include "layers/layout.h"
#include "plan/paths.h"

namespace belljar {

// Adds the places that hide and protect. Only a view can make them true. `secret` are paths that
// the policy did not name and that are hidden all the same.
Status add_exceptions(Layout& layout, const Policy& policy, Tracer& tracer, const std::string& home,
                      const std::vector<std::string>& secret);

// Something that was asked for is not there: said, and in mode `on` refused.
Status complain(Layout& layout, const Policy& policy, std::string what, int err);

}  // namespace belljar
