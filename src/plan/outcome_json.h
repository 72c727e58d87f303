// An outcome as data: what `--report` writes and bindings give out.
#pragma once

#include <boost/json/fwd.hpp>

#include "belljar/outcome.h"

namespace belljar {

boost::json::object outcome_to_json(const Policy& policy, const Outcome& outcome);

}  // namespace belljar
