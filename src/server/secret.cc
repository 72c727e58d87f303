#include "server/secret.h"

#include <cstdlib>

#include "base/sha256.h"

namespace belljar::server {
namespace {

constexpr std::size_t kBlock = 64;

std::string from_hex(std::string_view digits) {
  auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes.push_back(static_cast<char>(value(digits[i]) << 4 | value(digits[i + 1])));
  return bytes;
}

}  // namespace

std::string sign(std::string_view key, std::string_view text) {
  std::string padded(key);
  if (padded.size() > kBlock) padded = from_hex(sha256_hex(padded));
  padded.resize(kBlock, '\0');
  auto mixed = [&](char with) {
    std::string block = padded;
    for (char& c : block) c = static_cast<char>(c ^ with);
    return block;
  };
  const std::string inner = from_hex(sha256_hex(mixed(0x36) + std::string(text)));
  return sha256_hex(mixed(0x5c) + inner);
}

bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  int different = 0;
  for (std::size_t i = 0; i < a.size(); ++i) different |= a[i] ^ b[i];
  return different == 0;
}

}  // namespace belljar::server
