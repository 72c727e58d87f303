#include "base/random.h"

#include <sys/random.h>

#include <cstdlib>
#include <string_view>

namespace belljar {

std::string random_hex(std::size_t bytes) {
  std::string raw(bytes, '\0');
  if (::getrandom(raw.data(), raw.size(), 0) != static_cast<ssize_t>(raw.size())) std::abort();
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (char c : raw) {
    const auto byte = static_cast<unsigned char>(c);
    hex.push_back(kDigits[byte >> 4U]);
    hex.push_back(kDigits[byte & 0xfU]);
  }
  return hex;
}

}  // namespace belljar
