// What each profile keeps on each kind of host, as a table for docs/hosts.md.
#pragma once

#include <string>

namespace belljar::cli {

std::string ladder_table();

}  // namespace belljar::cli
