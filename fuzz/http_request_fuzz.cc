// Any bytes as an HTTP connection: what passes and what is judged does not depend on how they
// arrive, and nothing passes that was not there or comes after an end.
#include <algorithm>
#include <cstdlib>
#include <span>

#include "broker/http_request.h"
#include "policy/host_name.h"

namespace belljar::broker {
namespace {

using Kind = HttpRequests::Kind;

void require(bool claim) {
  if (!claim) std::abort();
}

struct Followed {
  std::vector<HttpRequest> requests;
  std::vector<std::size_t> heads;  // where each begins and ends
  std::size_t passed = 0;
  HttpRequests::Step last;
  bool operator==(const Followed&) const = default;
};

void check(const HttpHost& host) {
  if (host.address)
    require(host.address->text() == host.name);
  else
    require(canonical_wire_name(host.name) == host.name);
  require(host.port.value_or(1) != 0);
}

Followed follow(Bytes bytes, std::size_t piece) {
  Followed followed;
  HttpRequests requests;
  std::size_t there = 0;
  for (;;) {
    followed.last = requests.feed(bytes.first(there).subspan(followed.passed));
    const HttpRequests::Step& step = followed.last;
    require(step.pass <= there - followed.passed);
    require((step.pass != 0) == (step.kind == Kind::request || step.kind == Kind::body));
    require((step.kind == Kind::malformed) == !step.reason.empty());
    require(step.kind != Kind::not_http || followed.passed == 0);
    if (step.kind == Kind::request) {
      check(step.request.host);
      followed.requests.push_back(step.request);
      followed.heads.push_back(followed.passed);
      followed.heads.push_back(followed.passed + step.pass);
    }
    followed.passed += step.pass;
    if (step.pass != 0) continue;
    if (step.kind == Kind::need_more) require(there - followed.passed <= kMaxHttpHead + 1);
    if (there == bytes.size()) return followed;
    there = std::min(bytes.size(), there + piece);
  }
}

}  // namespace
}  // namespace belljar::broker

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace belljar::broker;
  const Bytes bytes = std::as_bytes(std::span(data, size));
  const Followed whole = follow(bytes, size);
  require(follow(bytes, 1) == whole);
  require(follow(bytes, 7) == whole);

  // Every head that passed is one on its own, for the same host.
  for (std::size_t i = 0; i < whole.requests.size(); ++i) {
    const Bytes head = bytes.first(whole.heads[2 * i + 1]).subspan(whole.heads[2 * i]);
    const HttpRequests::Step step = HttpRequests().feed(head);
    require(step.kind == Kind::request && step.pass == head.size());
    require(step.request == whole.requests[i]);
  }
  return 0;
}
