// SHA-256 (FIPS 180-4), for remembering which content was trusted. Small and not
// fast: configuration files only.
#pragma once

#include <string>
#include <string_view>

namespace belljar {

// 64 hexadecimal digits, lower case.
std::string sha256_hex(std::string_view bytes);

}  // namespace belljar
