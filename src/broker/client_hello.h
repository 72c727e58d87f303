// The hello of a TLS client, read far enough to know which server the guest asks for, before a byte
// of it goes on. Nothing is decrypted and nothing answered.
//
// A server must not be able to read another name out of the same bytes than we do, so what is
// doubtful is malformed: two names, an extension twice, a byte too many. What this cannot see: a
// name inside an encrypted hello (which is reported), and the names that HTTP uses inside TLS.
// What comes after the hello is tls_talk.h's.
// RFC 8446, RFC 6066 (server_name), RFC 7301 (ALPN), RFC 9849 (encrypted hello).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "broker/bytes.h"

namespace belljar::broker {

// Bytes on the wire, with the headers of records. Post-quantum hellos have about 2 KiB.
inline constexpr std::size_t kMaxClientHello = std::size_t{64} << 10;

struct ClientHello {
  std::optional<std::string> server_name;  // canonical (policy/host_name.h); never an address
  std::vector<std::string> alpn;           // in the guest's order, GREASE included; any bytes
  bool encrypted_client_hello = false;     // the extension is there: in earnest or as GREASE
  bool operator==(const ClientHello&) const = default;
};

struct HelloVerdict {
  enum class Kind {
    need_more,  // ask again once there are `at_least` bytes
    not_tls,    // no TLS server would read a hello from these bytes
    malformed,  // it begins as TLS, and `reason` says what is wrong
    complete,
  };
  Kind kind = Kind::need_more;
  std::size_t at_least = 0;  // more than there are now; asking earlier is only a waste
  std::string reason;
  ClientHello hello;
  std::size_t size = 0;  // of a complete one, with the headers of its records
  bool operator==(const HelloVerdict&) const = default;
};

// All that the client has sent from where the hello begins. What follows it (early data) is not
// looked at.
HelloVerdict read_client_hello(Bytes so_far);

}  // namespace belljar::broker
