// The requests of an HTTP/1 connection, followed from the first byte to the last: which bytes may
// go on, and for which host each request is. Nothing here decides, rewrites or reads an answer.
//
// The danger is a server that finds a request where we see a body, or another host than we do. So
// this is no tolerant reader: whatever two servers may read differently is malformed, and the
// connection ends there. That refuses things which the RFCs allow (a Content-Length given twice,
// chunk extensions, bytes beyond ASCII in a header, a body that looks like a request).
// RFC 9110, RFC 9112.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "broker/bytes.h"
#include "broker/hidden_request.h"
#include "broker/http_head.h"

namespace belljar::broker {

inline constexpr std::size_t kMaxHttpLine = std::size_t{16} << 10;
inline constexpr std::size_t kMaxHttpHead = std::size_t{64} << 10;

struct HttpRequest {
  std::string method;
  HttpHost host;
  bool connect = false;  // CONNECT: `host` is where to
  bool upgrade = false;  // to a websocket
  bool operator==(const HttpRequest&) const = default;
};

// Feed it what was received and has not been passed on yet, held bytes first, again and again:
//
//   step = requests.feed(held);
//   if (step.kind == Kind::request && !judge(step.request)) close;
//   send the first step.pass bytes and drop them from `held`; repeat while step.pass > 0
//
// A head is held until it is complete, so at most kMaxHttpHead bytes ever are.
class HttpRequests {
 public:
  enum class Kind {
    need_more,  // nothing can go on before more has come
    request,    // a head of `pass` bytes, to be judged before they go
    body,       // `pass` bytes of a body that was judged with its head
    waiting,    // after Upgrade or CONNECT: see continue_as_http()
    http2,      // the connection begins with the preface of HTTP/2
    not_http,   // only as the first verdict: no HTTP server would read a request here
    malformed,  // `reason` says why; nothing may pass any more
  };
  struct Step {
    Kind kind = Kind::need_more;
    std::size_t pass = 0;
    HttpRequest request;
    std::string reason;
    bool operator==(const Step&) const = default;
  };

  Step feed(Bytes held);

  // After CONNECT, or an Upgrade to a websocket, nothing passes until the server has answered. If
  // it agrees (upgrade_answer.h; 2xx to CONNECT), the connection is HTTP no longer and the caller's
  // to relay or close. Otherwise it stays HTTP, and this says so. A websocket is asked for by the
  // first request of a connection or not at all, so the first answer is the one that counts.
  //
  // Other upgrades need no waiting: clients ask for h2c without needing it, and what follows must
  // be HTTP/1 all the same, which no other protocol begins with.
  void continue_as_http();

 private:
  enum class State { opening, head, body, chunk_size, chunk, chunk_end, trailer, waiting, ended };
  enum class Opening { blank, method, gap };

  std::optional<Step> step(Bytes held);
  std::optional<Step> opening(std::string_view held);
  std::optional<Step> head(std::string_view held);
  std::optional<Step> request_line(std::string_view line);
  Step request();
  Step body(std::string_view held);
  Step body_of(std::string_view bytes);
  std::optional<Step> chunk_size(std::string_view held);
  std::optional<Step> chunk_end(std::string_view held);
  std::optional<Step> trailer(std::string_view held);

  Result<std::optional<std::string_view>> next_line(std::string_view held);
  void go_on(State state);
  Step end(Kind kind, std::string reason = {});

  State state_ = State::opening;
  Opening opening_ = Opening::blank;
  bool odd_ = false;   // white space in the opening that servers differ about
  bool first_ = true;  // request of the connection
  bool has_request_line_ = false;
  HttpHead head_;
  HiddenRequest hidden_;     // in the body
  std::size_t scanned_ = 0;  // bytes of what is held that need not be looked at again
  std::size_t line_ = 0;     // where the current line begins
  std::uint64_t left_ = 0;   // bytes of the body or of the chunk
  Step last_;                // which is repeated for ever
};

}  // namespace belljar::broker
