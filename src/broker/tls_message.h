// One message of a TLS handshake, out of the records that carry it. A message may lie in as many
// records as its sender likes, and a record may arrive in any pieces. RFC 8446, 5.1 (RFC 5246, 6.2
// for older versions: the frames are the same).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "broker/bytes.h"

namespace belljar::broker {

inline constexpr std::size_t kTlsRecordHeader = 5;

// Types of records.
enum class TlsRecord : unsigned { change_cipher = 20, alert = 21, handshake = 22, data = 23 };

struct TlsMessage {
  enum class Kind {
    need_more,  // ask again once there are `at_least` bytes
    not_tls,    // they do not begin with a record of a handshake
    malformed,  // they do, and `reason` says what is wrong
    complete,
  };
  Kind kind = Kind::need_more;
  std::size_t at_least = 0;  // more than there are now; asking earlier is only a waste
  std::string reason;
  std::vector<std::byte> body;
  std::size_t size = 0;    // of the records that carried it
  std::size_t behind = 0;  // bytes behind it in the last of them
};

// The first message, which must have this type. With the headers of its records it is at most
// `longest` bytes long.
TlsMessage read_tls_message(Bytes so_far, unsigned type, std::size_t longest);

}  // namespace belljar::broker
