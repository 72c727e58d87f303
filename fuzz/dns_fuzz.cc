// Any bytes as a DNS query: what is read of them is bounded, and every answer is a packet that
// can be read again, no longer than it may be.
#include <algorithm>
#include <cstdlib>
#include <span>

#include "broker/dns.h"
#include "policy/host_name.h"

namespace belljar::broker {
namespace {

void require(bool claim) {
  if (!claim) std::abort();
}

const std::vector<IpAddress> kFew = {IpAddress::v4(192, 0, 2, 1), *IpAddress::parse("2001:db8::1")};
const std::vector<IpAddress> kMany(100, IpAddress::v4(192, 0, 2, 1));

void skip_name(Reader& reader) {
  for (unsigned size = reader.u8(); size != 0; size = reader.u8()) {
    if (size >= 0xc0) {
      require((size & 0x3fU) == 0 && reader.u8() == 12);
      return;
    }
    reader.take(size);
  }
}

void check_packet(const DnsQuestion& question, const std::vector<std::byte>& packet,
                  std::size_t most) {
  require(packet.size() <= most);
  Reader reader(packet);
  require(reader.u16() == question.id);
  require((reader.u16() & 0x8000U) != 0);
  const unsigned questions = reader.u16();
  const unsigned records = unsigned{reader.u16()} + reader.u16() + reader.u16();
  require(questions == (question.echo.empty() ? 0 : 1));
  require(std::ranges::equal(reader.take(question.echo.size()), question.echo));
  for (unsigned i = 0; i < records; ++i) {
    skip_name(reader);
    reader.take(8);
    reader.take(reader.u16());
  }
  require(reader.ok() && reader.at_end());
}

void check_answers(const DnsQuestion& question) {
  const std::size_t udp = std::clamp<std::size_t>(question.edns_size.value_or(0), 512, 1232);
  for (const auto& addresses : {std::span(kFew), std::span(kFew).first(0), std::span(kMany)}) {
    check_packet(question, dns_answer(question, addresses, 60, Transport::udp), udp);
    check_packet(question, dns_answer(question, addresses, 60, Transport::tcp), 65535);
  }
}

}  // namespace
}  // namespace belljar::broker

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace belljar;
  using namespace belljar::broker;
  const Bytes bytes = std::as_bytes(std::span(data, size));

  Result<std::optional<Bytes>> message = next_dns_message(bytes);
  if (message && *message) require(2 + (*message)->size() <= size);

  const auto question = read_dns_query(bytes);
  if (question) {
    require(canonical_wire_name(question->name) == question->name);
    require(question->klass == 1 && question->opcode == 0);
    check_answers(*question);
    check_packet(*question, dns_refusal(*question, Rcode::no_such_name), 512);
  } else {
    require(question.error().rcode != Rcode::no_error && !question.error().reason.empty());
    if (question.error().question)
      check_packet(*question.error().question,
                   dns_refusal(*question.error().question, question.error().rcode), 512);
  }
  return 0;
}
