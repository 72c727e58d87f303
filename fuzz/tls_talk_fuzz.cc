// Any bytes as the talk of a guest and a server: what passes does not depend on how it arrives, and
// each hello is for the same server.
//
// The input is a row of speeches: who speaks (an odd byte: the guest), the length in two bytes, and
// the text.
#include <cstdlib>
#include <optional>
#include <span>

#include "broker/tls_talk.h"

namespace belljar::broker {
namespace {

using Kind = TlsTalk::Kind;

void require(bool claim) {
  if (!claim) std::abort();
}

struct Heard {
  std::vector<std::byte> held, passed;
  std::optional<std::string> name;
  Kind last = Kind::need_more;

  void hear(TlsTalk& talk, Bytes text) {
    held.insert(held.end(), text.begin(), text.end());
    for (;;) {
      const TlsTalk::Step step = talk.hear_guest(held);
      require(step.pass <= held.size());
      require((step.kind == Kind::hello || step.kind == Kind::pass) == (step.pass > 0));
      require((step.kind == Kind::refused) == !step.reason.empty());
      if (step.kind == Kind::hello) {
        const std::string asked = step.hello.server_name.value_or("");
        require(!name || *name == asked);
        name = asked;
      }
      last = step.kind;
      if (step.pass == 0) return;
      const auto end = held.begin() + static_cast<std::ptrdiff_t>(step.pass);
      passed.insert(passed.end(), held.begin(), end);
      held.erase(held.begin(), end);
    }
  }
};

}  // namespace
}  // namespace belljar::broker

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace belljar::broker;
  TlsTalk at_once, in_bytes;
  Heard heard_at_once, heard_in_bytes;
  Reader input(std::as_bytes(std::span(data, size)));
  while (!input.at_end()) {
    const bool guest = input.u8() % 2 != 0;
    const std::size_t length = input.u16();
    const Bytes text = input.take(std::min(length, input.rest().size()));
    if (guest)
      heard_at_once.hear(at_once, text);
    else
      at_once.hear_server(text);
    for (std::size_t i = 0; i < text.size(); ++i)
      if (guest)
        heard_in_bytes.hear(in_bytes, text.subspan(i, 1));
      else
        in_bytes.hear_server(text.subspan(i, 1));
    heard_at_once.hear(at_once, {});
    heard_in_bytes.hear(in_bytes, {});
    // Who waits for the whole of a hello sees later what is wrong with it.
    if (heard_at_once.last == Kind::refused || heard_in_bytes.last == Kind::refused) {
      require(heard_at_once.passed.size() <= heard_in_bytes.passed.size());
      return 0;
    }
    require(heard_at_once.passed == heard_in_bytes.passed);
    require(at_once.has_heard_server() == in_bytes.has_heard_server());
    require(heard_at_once.last == heard_in_bytes.last);
  }
  return 0;
}
