// The one canonical form of a host name. Rules, DNS questions, SNI and Host are
// compared in this form and no other, as bytes; what has none is refused. That covers
// everything that some reader takes for an address: 127.1, 0x7f.1, 2130706433.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace belljar {

// As a person writes it: in any case, in any script (IDNA 2008 with UTS 46, to
// A-labels), with or without the trailing dot.
Result<std::string> canonical_name(std::string_view name);

// As a guest sends it: the same, but what is not ASCII is refused and not mapped, since
// the server at the other end reads the bytes and not what we make of them.
Result<std::string> canonical_wire_name(std::string_view name);

}  // namespace belljar
