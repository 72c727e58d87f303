// Signatures that nobody forges.
#pragma once

#include <string>
#include <string_view>

namespace belljar::server {

// HMAC-SHA-256 (RFC 2104), 64 hexadecimal digits.
std::string sign(std::string_view key, std::string_view text);

// In a time that does not tell where they differ.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace belljar::server
