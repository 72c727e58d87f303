// Gate: a connection that a name allows. Names share addresses, so what the guest says
// goes on only while it names an allowed one: the server name of every TLS hello, the Host of
// every HTTP request. On other ports than theirs another protocol goes by the address alone.
#pragma once

#include <string>
#include <vector>

#include "broker/events.h"
#include "broker/http_request.h"
#include "broker/relay.h"
#include "broker/tls_talk.h"

namespace belljar::broker {

struct GateParts {
  Loop& loop;
  Judge& judge;
  Events& events;
  Pipes& pipes;
  Endpoint endpoint;
  Decision decision;  // by which the connection came to be
  Program program;
};

inline constexpr std::size_t kFirstChunk = std::size_t{16} << 10;

class Gate {
 public:
  Gate(GateParts parts, Link& link)
      : judge_(parts.judge),
        events_(parts.events),
        pipes_(parts.pipes),
        endpoint_(parts.endpoint),
        decision_(std::move(parts.decision)),
        program_(std::move(parts.program)),
        link_(link),
        answered_(parts.loop) {}

  // What the guest says.
  Async<void> pass();
  // What it is answered. Nothing is held back, but it decides what the guest may say next.
  Async<void> answer();

 private:
  enum class Speech { unknown, tls, http, opaque };
  enum class Upgrade { none, asked, refused, done };

  // False: it has ended, or is broken.
  Async<bool> read_more();
  Async<bool> pass_on(std::size_t size);
  // True: go on with whatever is left. False: refused, ended or broken.
  Async<bool> pass_tls();
  Async<bool> pass_requests();
  Async<bool> pass_request(const HttpRequests::Step& step);
  Async<void> listen();
  void look_for_upgrade(std::span<const std::byte> answer);
  bool is_allowed(const ClientHello& hello);
  bool is_allowed(const std::string& name);
  bool refuse(const std::string& name, std::string why);

  Judge& judge_;
  Events& events_;
  Pipes& pipes_;
  Endpoint endpoint_;
  Decision decision_;
  Program program_;
  Link& link_;
  std::vector<std::byte> held_;      // of the guest, and not passed on
  std::size_t chunk_ = kFirstChunk;  // to be read at once: more where more comes
  bool ended_ = false;               // the guest has nothing more to say, and all of it has gone
  Speech speech_ = Speech::unknown;
  TlsTalk tls_;
  Upgrade upgrade_ = Upgrade::none;
  bool first_request_ = true;
  std::string noted_;           // the name of the last event
  std::string upgrade_answer_;  // as far as it has come
  Signal answered_;             // it is no longer `asked`
};

}  // namespace belljar::broker
