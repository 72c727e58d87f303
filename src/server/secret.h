// Random names that nobody guesses, and signatures that nobody forges.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace belljar::server {

// Two digits for each byte. Without randomness there is nothing left to do: it aborts.
std::string random_hex(std::size_t bytes);

// HMAC-SHA-256 (RFC 2104), 64 hexadecimal digits.
std::string sign(std::string_view key, std::string_view text);

// In a time that does not tell where they differ.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace belljar::server
