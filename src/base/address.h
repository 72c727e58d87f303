// IP addresses, endpoints and ranges as plain values. IPv4 is kept as IPv6 keeps it
// (::ffff:a.b.c.d), so that one address has one form whichever way it arrives.
//
// Parsing knows the two written forms and no other: 127.1, 0x7f000001, 2130706433 and
// 010.0.0.1 are what inet_aton(3) makes addresses of and filters do not recognise. A
// zone (fe80::1%eth0) is no part of an address here.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace belljar {

// Where an address can be reached from. Documentation ranges count as global: nothing
// answers there, and nothing of ours is there.
enum class Scope {
  global,
  unspecified,  // 0.0.0.0, which Linux takes for loopback
  loopback,
  link_local,   // neighbours, and the metadata services of clouds
  private_use,  // a site's or provider's own
  multicast,
  broadcast,
  reserved,  // nobody's, as far as we know
};

class IpAddress {
 public:
  using Bytes = std::array<std::uint8_t, 16>;

  constexpr IpAddress() = default;  // ::
  constexpr explicit IpAddress(const Bytes& bytes) : bytes_(bytes) {}
  explicit IpAddress(const in_addr& v4);
  explicit IpAddress(const in6_addr& v6);
  static constexpr IpAddress v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
    return IpAddress(Bytes{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d});
  }

  // nullopt: this is no address.
  static std::optional<IpAddress> parse(std::string_view text);

  constexpr const Bytes& bytes() const { return bytes_; }
  bool is_v4() const;
  std::string text() const;

  // The IPv4 address that this IPv6 one leads to through a translator or tunnel:
  // NAT64, 6to4, IPv4-compatible, IPv4-translated. Who judges the one judges the other.
  std::optional<IpAddress> embedded() const;

  // That of the embedded address too, where it is narrower.
  Scope scope() const;

  constexpr auto operator<=>(const IpAddress&) const = default;

 private:
  Bytes bytes_{};
};

// An address as connect(2) takes it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const;
};

struct Endpoint {
  IpAddress address;
  std::uint16_t port = 0;

  // nullopt: neither AF_INET nor AF_INET6, or too short for what it says it is.
  static std::optional<Endpoint> from(const sockaddr_storage& storage, socklen_t size);
  SocketAddress to_socket_address() const;  // AF_INET for IPv4
  std::string text() const;                 // 10.1.2.3:80, [2001:db8::1]:80

  constexpr auto operator<=>(const Endpoint&) const = default;
};

// A range of addresses of one family: ::/0 holds no IPv4.
class Prefix {
 public:
  constexpr Prefix() = default;
  explicit Prefix(const IpAddress& one);  // that one only

  // ADDRESS or ADDRESS/LENGTH. nullopt: it is neither, or has bits beyond its length.
  static std::optional<Prefix> parse(std::string_view text);
  // The range of that length that `address` lies in; the length is its family's.
  static std::optional<Prefix> around(const IpAddress& address, unsigned length);

  bool holds(const IpAddress& address) const;
  bool holds(const Prefix& other) const;
  const IpAddress& base() const { return base_; }
  unsigned length() const;   // as written: up to 32 for IPv4
  bool is_single() const;    // one address
  std::string text() const;  // without the length when it is one address

  constexpr auto operator<=>(const Prefix&) const = default;

 private:
  Prefix(const IpAddress& base, unsigned bits) : base_(base), bits_(bits) {}

  IpAddress base_;
  unsigned bits_ = 128;  // of the 16 bytes
};

std::string_view name(Scope scope);  // "loopback", "link-local", ...

}  // namespace belljar

template <>
struct std::hash<belljar::IpAddress> {
  std::size_t operator()(const belljar::IpAddress& address) const noexcept;
};

template <>
struct std::hash<belljar::Endpoint> {
  std::size_t operator()(const belljar::Endpoint& endpoint) const noexcept;
};
