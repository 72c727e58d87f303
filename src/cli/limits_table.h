// What a caller of `belljar serve` can run into, as a table for docs/server.md.
#pragma once

#include <string>

namespace belljar::cli {

std::string limits_table();

}  // namespace belljar::cli
