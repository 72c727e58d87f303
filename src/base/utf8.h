// UTF-8, in text that others wrote.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace belljar {

// The bytes of the well-formed character at the front, 0 if there is none. Overlong forms,
// surrogates and what is beyond U+10FFFF are none.
std::size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

// Each byte that belongs to no character becomes U+FFFD.
std::string repair_utf8(std::string_view text);

}  // namespace belljar
