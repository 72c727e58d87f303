// TlsTalk: a TLS connection, followed in both directions until nothing that the guest may still
// say can name another server.
//
// After its hello a client names a server again in two cases, and both are followed:
//
//   - The server asks for another hello (HelloRetryRequest). It must name the same server.
//   - TLS 1.2 and older let a client start over inside the connection (renegotiation), with a hello
//     that is encrypted. So there the types of the guest's records are read to the end, and a
//     handshake after its Finished is refused.
//
// TLS 1.3 has no third way (RFC 8446, 4.1.2), so once a server has chosen it, the talk is open.
// Records that carry data pass at any time: early data comes before the server's answer. Nothing is
// decrypted.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "broker/bytes.h"
#include "broker/client_hello.h"
#include "broker/server_hello.h"

namespace belljar::broker {

class TlsTalk {
 public:
  enum class Kind {
    need_more,  // nothing can go on before more has come
    hello,      // of `pass` bytes, to be judged before they go
    pass,       // `pass` bytes that name nobody
    open,       // all that is held and all that comes may go
    not_tls,    // only as the first verdict: no TLS server would read a hello here
    refused,    // `reason` says why; nothing may pass any more
  };
  struct Step {
    Kind kind = Kind::need_more;
    std::size_t pass = 0;
    ClientHello hello;
    std::string reason;
    bool operator==(const Step&) const = default;
  };

  // What the guest has said and has not been passed on yet, held bytes first, again and again.
  Step hear_guest(Bytes held);
  // What the server says, from its first byte, before the guest can have read it. A server that
  // does not speak TLS is none of ours, but then the guest has nothing more to say.
  void hear_server(Bytes bytes);
  // Whether what the server says need not be heard any more.
  bool has_heard_server() const { return state_ >= State::older; }

 private:
  enum class State {
    hello,       // the guest's first one is to come
    unanswered,  // the server's is to come
    retry,       // the guest's second one is
    older,       // than TLS 1.3: every record is looked at
    open,
    refused,
  };

  Step first_hello(Bytes held);
  Step second_hello(Bytes held);
  Step records(Bytes held);
  bool begin_record(Bytes header);
  bool begin_handshake(std::size_t size);
  bool follow_messages(Bytes content);
  bool hear_server_record();
  void take_server_hello(const ServerHello& hello);
  Step refuse(std::string reason);

  State state_ = State::hello;
  std::string reason_;  // of State::refused
  // The guest's side.
  std::string name_;         // that its first hello asked for
  std::size_t wanted_ = 0;   // bytes of a hello, before it is worth looking again
  std::size_t left_ = 0;     // bytes of the current record
  bool in_clear_ = false;    // the record is a handshake that is not encrypted
  bool ciphered_ = false;    // it has said that from now on it encrypts
  bool finished_ = false;    // it has sent the one handshake record after that
  std::size_t message_ = 0;  // bytes left of the current message, of those in clear
  std::vector<std::byte> message_header_;
  // The server's.
  std::vector<std::byte> server_;  // what it said and was not understood yet
  std::size_t server_wanted_ = 0;
  std::size_t server_skip_ = 0;  // bytes of a record that does not matter
  bool retried_ = false;         // it has asked for another hello
  bool server_spoke_first_ = false;
};

}  // namespace belljar::broker
