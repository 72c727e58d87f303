// Text that others wrote, made safe for a terminal and for one line of a log.
#pragma once

#include <string>
#include <string_view>

namespace belljar {

// Control characters and what is no UTF-8 are written \xNN, so that a file cannot move the cursor
// or forge a line of ours; what is very long is cut in the middle.
std::string printable(std::string_view text);

}  // namespace belljar
