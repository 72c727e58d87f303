// The hello of a TLS server, read far enough to know what the client may say next: whether it is
// to send another hello, and whether this is TLS 1.3, in which no later message can name a server.
// RFC 8446, 4.1.3 and 4.1.4.
#pragma once

#include <cstddef>
#include <string>

#include "broker/bytes.h"

namespace belljar::broker {

inline constexpr std::size_t kMaxServerHello = std::size_t{64} << 10;

struct ServerHello {
  bool is_retry = false;  // a HelloRetryRequest: the client is to send another hello
  bool is_1_3 = false;    // or else an older version
  bool operator==(const ServerHello&) const = default;
};

struct ServerHelloVerdict {
  enum class Kind {
    need_more,  // ask again once there are `at_least` bytes
    malformed,  // `reason` says what is wrong; other protocols are, too
    complete,
  };
  Kind kind = Kind::need_more;
  std::size_t at_least = 0;  // more than there are now; asking earlier is only a waste
  std::string reason;
  ServerHello hello;
  std::size_t size = 0;  // of a complete one, to the end of its last record
  bool operator==(const ServerHelloVerdict&) const = default;
};

// All that the server has sent from the record in which its hello begins.
ServerHelloVerdict read_server_hello(Bytes so_far);

}  // namespace belljar::broker
