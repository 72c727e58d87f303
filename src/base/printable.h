// Text that others wrote, made safe for a terminal and for one line of a log.
#pragma once

#include <string>
#include <string_view>

namespace belljar {

// All of it, on one line. What is no UTF-8, is not seen, looks like a space and is none, or changes
// how the rest is shown, is written \xNN: it can neither move the cursor, nor forge a line of ours,
// nor hide what a person is asked to approve.
std::string visible(std::string_view text);

// The same; what is very long is cut in the middle.
std::string printable(std::string_view text);

}  // namespace belljar
