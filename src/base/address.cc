#include "base/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>

namespace belljar {
namespace {

using Bytes = IpAddress::Bytes;

constexpr unsigned kMappedBits = 96;
constexpr unsigned kAllBits = 128;

// Whether the first `bits` bits are the same.
bool same_start(const Bytes& a, const Bytes& b, unsigned bits) {
  const std::size_t whole = bits / 8;
  if (std::memcmp(a.data(), b.data(), whole) != 0) return false;
  const unsigned rest = bits % 8;
  return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

struct Range {
  Bytes base;
  unsigned bits;
  Scope scope;
};

constexpr Range v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d, unsigned length,
                   Scope scope) {
  return {IpAddress::v4(a, b, c, d).bytes(), kMappedBits + length, scope};
}

constexpr Range v6(std::uint16_t first, std::uint16_t second, unsigned length, Scope scope) {
  return {{static_cast<std::uint8_t>(first >> 8U), static_cast<std::uint8_t>(first & 0xffU),
           static_cast<std::uint8_t>(second >> 8U), static_cast<std::uint8_t>(second & 0xffU)},
          length,
          scope};
}

// The first that holds an address says what it is.
// https://www.iana.org/assignments/iana-ipv4-special-registry
// https://www.iana.org/assignments/iana-ipv6-special-registry
constexpr Range kRanges[] = {
    v4(0, 0, 0, 0, 8, Scope::unspecified),
    v4(127, 0, 0, 0, 8, Scope::loopback),
    v4(169, 254, 0, 0, 16, Scope::link_local),
    v4(168, 63, 129, 16, 32, Scope::link_local),  // Azure's metadata, at an address like any other
    v4(10, 0, 0, 0, 8, Scope::private_use),
    v4(100, 64, 0, 0, 10, Scope::private_use),
    v4(172, 16, 0, 0, 12, Scope::private_use),
    v4(192, 168, 0, 0, 16, Scope::private_use),
    v4(192, 0, 0, 0, 24, Scope::reserved),
    v4(198, 18, 0, 0, 15, Scope::private_use),  // benchmarks, and proxies that invent addresses
    v4(224, 0, 0, 0, 4, Scope::multicast),
    v4(255, 255, 255, 255, 32, Scope::broadcast),
    v4(240, 0, 0, 0, 4, Scope::reserved),
    v4(0, 0, 0, 0, 0, Scope::global),

    {IpAddress().bytes(), kAllBits, Scope::unspecified},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, kAllBits, Scope::loopback},
    v6(0xfe80, 0, 10, Scope::link_local),
    v6(0xfec0, 0, 10, Scope::private_use),
    v6(0xfc00, 0, 7, Scope::private_use),
    v6(0xff00, 0, 8, Scope::multicast),
    v6(0x2001, 0, 23, Scope::reserved),  // Teredo, ORCHID and the like
    v6(0x2000, 0, 3, Scope::global),
};

struct Embedding {
  Bytes base;
  unsigned bits;
  std::size_t at;  // of the four bytes
};

constexpr Embedding kEmbeddings[] = {
    {{0x00, 0x64, 0xff, 0x9b}, 96, 12},              // NAT64, RFC 6052
    {{0x20, 0x02}, 16, 2},                           // 6to4
    {{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, 12},  // IPv4-translated, RFC 2765
    {{}, 96, 12},                                    // IPv4-compatible
};

Scope scope_of(const Bytes& bytes) {
  for (const Range& range : kRanges)
    if (same_start(bytes, range.base, range.bits)) return range.scope;
  return Scope::reserved;
}

std::size_t hash_of(std::span<const std::uint8_t> bytes) {
  return std::hash<std::string_view>{}(
      std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

}  // namespace

IpAddress::IpAddress(const in_addr& v4) : IpAddress(IpAddress::v4(0, 0, 0, 0)) {
  std::memcpy(bytes_.data() + 12, &v4, sizeof v4);
}

IpAddress::IpAddress(const in6_addr& v6) { std::memcpy(bytes_.data(), &v6, sizeof v6); }

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  char copy[INET6_ADDRSTRLEN] = {};
  // A NUL would end the text for inet_pton, and not for who reads on.
  if (text.size() >= sizeof copy || text.find('\0') != text.npos) return std::nullopt;
  text.copy(copy, text.size());
  in_addr v4{};
  if (::inet_pton(AF_INET, copy, &v4) == 1) return IpAddress(v4);
  in6_addr v6{};
  if (::inet_pton(AF_INET6, copy, &v6) == 1) return IpAddress(v6);
  return std::nullopt;
}

bool IpAddress::is_v4() const {
  return same_start(bytes_, IpAddress::v4(0, 0, 0, 0).bytes_, kMappedBits);
}

std::string IpAddress::text() const {
  char buffer[INET6_ADDRSTRLEN];
  const bool v4 = is_v4();
  // Cannot fail: the family is known and the buffer large enough.
  return ::inet_ntop(v4 ? AF_INET : AF_INET6, bytes_.data() + (v4 ? 12 : 0), buffer, sizeof buffer);
}

std::optional<IpAddress> IpAddress::embedded() const {
  const bool own_meaning = *this == IpAddress() || scope_of(bytes_) == Scope::loopback;
  if (is_v4() || own_meaning) return std::nullopt;
  for (const Embedding& form : kEmbeddings)
    if (same_start(bytes_, form.base, form.bits)) {
      const std::uint8_t* four = bytes_.data() + form.at;
      return IpAddress::v4(four[0], four[1], four[2], four[3]);
    }
  return std::nullopt;
}

Scope IpAddress::scope() const {
  // An embedded address is the one that matters: its prefix only says by which way.
  if (const std::optional<IpAddress> inner = embedded()) return inner->scope();
  return scope_of(bytes_);
}

const sockaddr* SocketAddress::get() const { return reinterpret_cast<const sockaddr*>(&storage); }

std::optional<Endpoint> Endpoint::from(const sockaddr_storage& storage, socklen_t size) {
  if (size >= sizeof(sockaddr_in) && storage.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &storage, sizeof in);
    return Endpoint{IpAddress(in.sin_addr), ntohs(in.sin_port)};
  }
  if (size >= sizeof(sockaddr_in6) && storage.ss_family == AF_INET6) {
    sockaddr_in6 in6{};
    std::memcpy(&in6, &storage, sizeof in6);
    return Endpoint{IpAddress(in6.sin6_addr), ntohs(in6.sin6_port)};
  }
  return std::nullopt;
}

SocketAddress Endpoint::to_socket_address() const {
  SocketAddress result;
  if (address.is_v4()) {
    sockaddr_in in{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {}, .sin_zero = {}};
    std::memcpy(&in.sin_addr, address.bytes().data() + 12, sizeof in.sin_addr);
    std::memcpy(&result.storage, &in, sizeof in);
    result.size = sizeof in;
    return result;
  }
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  in6.sin6_port = htons(port);
  std::memcpy(&in6.sin6_addr, address.bytes().data(), sizeof in6.sin6_addr);
  std::memcpy(&result.storage, &in6, sizeof in6);
  result.size = sizeof in6;
  return result;
}

std::string Endpoint::text() const {
  const std::string host = address.is_v4() ? address.text() : "[" + address.text() + "]";
  return host + ":" + std::to_string(port);
}

Prefix::Prefix(const IpAddress& one) : Prefix(one, kAllBits) {}

std::optional<Prefix> Prefix::around(const IpAddress& address, unsigned length) {
  if (length > (address.is_v4() ? kAllBits - kMappedBits : kAllBits)) return std::nullopt;
  const unsigned bits = address.is_v4() ? kMappedBits + length : length;
  Bytes bytes = address.bytes();
  for (unsigned bit = bits; bit < kAllBits; ++bit)
    bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] & ~(0x80U >> (bit % 8)));
  return Prefix(IpAddress(bytes), bits);
}

std::optional<Prefix> Prefix::parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::optional<IpAddress> address = IpAddress::parse(text.substr(0, slash));
  if (!address) return std::nullopt;
  if (slash == text.npos) return Prefix(*address);
  // Of ::ffff:10.0.0.0/8 nobody knows whose 8 bits are meant.
  if (address->is_v4() && text.find(':') != text.npos) return std::nullopt;
  const std::string_view digits = text.substr(slash + 1);
  unsigned length = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  const bool whole = error == std::errc{} && end == digits.data() + digits.size();
  if (!whole || (digits.size() > 1 && digits.starts_with('0'))) return std::nullopt;
  std::optional<Prefix> prefix = around(*address, length);
  if (prefix && prefix->base_ != *address) return std::nullopt;
  return prefix;
}

bool Prefix::holds(const IpAddress& address) const {
  return address.is_v4() == base_.is_v4() && same_start(address.bytes(), base_.bytes(), bits_);
}

bool Prefix::holds(const Prefix& other) const { return other.bits_ >= bits_ && holds(other.base_); }

unsigned Prefix::length() const { return base_.is_v4() ? bits_ - kMappedBits : bits_; }

bool Prefix::is_single() const { return bits_ == kAllBits; }

std::string Prefix::text() const {
  return is_single() ? base_.text() : base_.text() + "/" + std::to_string(length());
}

std::string_view name(Scope scope) {
  switch (scope) {
    case Scope::global:
      return "global";
    case Scope::unspecified:
      return "unspecified";
    case Scope::loopback:
      return "loopback";
    case Scope::link_local:
      return "link-local";
    case Scope::private_use:
      return "private";
    case Scope::multicast:
      return "multicast";
    case Scope::broadcast:
      return "broadcast";
    case Scope::reserved:
      return "reserved";
  }
  return "?";
}

}  // namespace belljar

std::size_t std::hash<belljar::IpAddress>::operator()(
    const belljar::IpAddress& address) const noexcept {
  return belljar::hash_of(address.bytes());
}

std::size_t std::hash<belljar::Endpoint>::operator()(
    const belljar::Endpoint& endpoint) const noexcept {
  std::array<std::uint8_t, 18> bytes{};
  std::ranges::copy(endpoint.address.bytes(), bytes.begin());
  bytes[16] = static_cast<std::uint8_t>(endpoint.port >> 8U);
  bytes[17] = static_cast<std::uint8_t>(endpoint.port & 0xffU);
  return belljar::hash_of(bytes);
}
