// Any bytes as what a worker says, cut into pieces anywhere: what is kept of them is
// bounded, frames come out whole, and every text that is given out can be sent as JSON.
#include <boost/json.hpp>
#include <cstdlib>

#include "base/utf8.h"
#include "session/frames.h"
#include "session/messages.h"
#include "session/output.h"

namespace {

constexpr std::size_t kLargest = 4096;

void require(bool claim) {
  if (!claim) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace belljar;
  using namespace belljar::session;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // As guests would forge them, too.
  if (const auto message = parse_message(bytes))
    if (const auto* done = std::get_if<Done>(&*message)) require(is_utf8(done->result_type));

  FrameReader reader(kLargest);
  Output output(64);
  for (std::size_t piece = 1; !bytes.empty(); piece = piece * 3 % 61 + 1) {
    const std::string_view part = bytes.substr(0, piece);
    bytes.remove_prefix(part.size());
    output.append(part);
    const Status fed = reader.feed(part);
    while (const auto payload = reader.next()) {
      require(payload->size() <= kLargest);
      (void)parse_message(*payload);
    }
    if (!fed) break;
  }
  require(is_utf8(output.text()));
  require(output.cut() <= output.written());
  return 0;
}
