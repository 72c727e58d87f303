// Any bytes as a TLS hello: the verdict does not depend on how they arrive, nor on what follows.
#include <cstdlib>
#include <span>

#include "broker/client_hello.h"
#include "policy/host_name.h"

namespace belljar::broker {
namespace {

using Kind = HelloVerdict::Kind;

void require(bool claim) {
  if (!claim) std::abort();
}

void check(const HelloVerdict& verdict, std::size_t size) {
  if (verdict.kind == Kind::need_more)
    require(verdict.at_least > size && verdict.at_least <= kMaxClientHello);
  else
    require((verdict.kind == Kind::complete) == verdict.reason.empty());
  if (verdict.kind != Kind::complete) require(verdict.hello == ClientHello{});
  if (verdict.hello.server_name)
    require(canonical_wire_name(*verdict.hello.server_name) == *verdict.hello.server_name);
}

}  // namespace
}  // namespace belljar::broker

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace belljar::broker;
  const Bytes bytes = std::as_bytes(std::span(data, size));
  const HelloVerdict whole = read_client_hello(bytes);
  check(whole, size);

  // As a patient caller asks, and (for what is short) as one who asks at every byte.
  for (const bool patient : {true, false}) {
    if (!patient && size > 2000) break;
    std::size_t there = 0;
    HelloVerdict verdict = read_client_hello({});
    while (verdict.kind == Kind::need_more && there < size) {
      const std::size_t next = patient ? verdict.at_least : there + 1;
      if (next > size) break;
      there = next;
      verdict = read_client_hello(bytes.first(there));
      check(verdict, there);
    }
    if (verdict.kind == Kind::need_more)
      require(whole.kind == Kind::need_more);
    else
      require(verdict.kind == whole.kind && verdict.hello == whole.hello);
  }
  return 0;
}
