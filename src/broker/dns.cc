#include "broker/dns.h"

#include <algorithm>

#include "policy/host_name.h"

namespace belljar::broker {
namespace {

constexpr unsigned kResponse = 0x8000;
constexpr unsigned kOpcodeShift = 11;
constexpr unsigned kTruncated = 0x0200;
constexpr unsigned kRecursionDesired = 0x0100;
constexpr unsigned kRecursionAvailable = 0x0080;  // Go takes an empty answer without it for broken
constexpr unsigned kCheckingDisabled = 0x0010;

constexpr std::uint16_t kSoa = 6;
constexpr std::uint16_t kOpt = 41;
constexpr std::uint16_t kIn = 1;
constexpr std::uint32_t kDnssecOk = 0x8000;

constexpr std::size_t kMaxLabel = 63;
constexpr std::size_t kMaxName = 253;  // as text

constexpr std::size_t kHeader = 12;
constexpr std::size_t kOptRecord = 11;
constexpr unsigned kQuestionName = 0xc000 | kHeader;  // a pointer to it

constexpr std::size_t kPlainUdp = 512;
constexpr std::size_t kLargestUdp = 1232;  // what passes everywhere in one piece
constexpr std::size_t kLargestTcp = 65535;

// A rule can be added while a guest lives, and nobody should wait for it.
constexpr std::uint32_t kRefusalTtl = 5;

// The labels with dots between them; nothing where they are cut off, compressed or too long. A dot
// inside a label becomes a byte that no host name has, so that it cannot pass for one between.
std::optional<std::string> read_name(Reader& reader) {
  std::string text;
  for (std::size_t size = reader.u8(); size != 0; size = reader.u8()) {
    if (size > kMaxLabel) return std::nullopt;
    if (!text.empty()) text.push_back('.');
    std::string label(as_text(reader.take(size)));
    std::ranges::replace(label, '.', '\0');
    text += label;
    if (text.size() > kMaxName) return std::nullopt;
  }
  if (!reader.ok()) return std::nullopt;
  return text;
}

struct Opt {
  std::uint16_t size;
  std::uint8_t version;
  bool dnssec_ok;
};

std::optional<Opt> read_opt(Reader& reader) {
  const bool is_opt = reader.u8() == 0 && reader.u16() == kOpt;
  const std::uint16_t size = reader.u16();
  const std::uint32_t flags = reader.u32();
  reader.take(reader.u16());  // options: none of them changes an answer
  if (!is_opt || !reader.ok()) return std::nullopt;
  return Opt{.size = size,
             .version = static_cast<std::uint8_t>(flags >> 16U & 0xffU),
             .dnssec_ok = (flags & kDnssecOk) != 0};
}

std::size_t longest_answer(const DnsQuestion& question, Transport transport) {
  if (transport == Transport::tcp) return kLargestTcp;
  return std::clamp<std::size_t>(question.edns_size.value_or(0), kPlainUdp, kLargestUdp);
}

struct Reply {
  Rcode rcode = Rcode::no_error;
  bool truncated = false;
  std::vector<Bytes> addresses = {};  // 4 or 16 bytes each
  std::uint32_t ttl = 0;
};

// Owned by the root, which is above every name. Without one a negative answer is not remembered,
// and some clients ask again at once.
void write_soa(Writer& out, std::uint32_t ttl) {
  constexpr std::uint32_t kSerial = 1;
  constexpr std::uint32_t kRefresh = 3600;
  constexpr std::uint32_t kRetry = 600;
  constexpr std::uint32_t kExpire = 86400;
  out.u8(0);
  out.u16(kSoa);
  out.u16(kIn);
  out.u32(ttl);
  out.u16(22);
  out.u8(0);  // its server and its person: none
  out.u8(0);
  for (std::uint32_t number : {kSerial, kRefresh, kRetry, kExpire, ttl}) out.u32(number);
}

void write_opt(Writer& out, const DnsQuestion& question, Rcode rcode) {
  out.u8(0);
  out.u16(kOpt);
  out.u16(kLargestUdp);
  out.u32(static_cast<std::uint32_t>(rcode) >> 4U << 24U | (question.dnssec_ok ? kDnssecOk : 0));
  out.u16(0);
}

std::vector<std::byte> write(const DnsQuestion& question, const Reply& reply) {
  const bool is_negative = reply.addresses.empty() && !question.echo.empty() &&
                           (reply.rcode == Rcode::no_error || reply.rcode == Rcode::no_such_name);
  Writer out;
  out.u16(question.id);
  out.u16(kResponse | unsigned{question.opcode} << kOpcodeShift |
          (reply.truncated ? kTruncated : 0) |
          (question.recursion_desired ? kRecursionDesired : 0) | kRecursionAvailable |
          (question.checking_disabled ? kCheckingDisabled : 0) |
          (static_cast<unsigned>(reply.rcode) & 0xfU));
  out.u16(question.echo.empty() ? 0 : 1);
  out.u16(static_cast<unsigned>(reply.addresses.size()));
  out.u16(is_negative ? 1 : 0);
  out.u16(question.edns_size ? 1 : 0);
  out.bytes(question.echo);
  for (const Bytes address : reply.addresses) {
    out.u16(kQuestionName);
    out.u16(question.type);
    out.u16(kIn);
    out.u32(reply.ttl);
    out.u16(static_cast<unsigned>(address.size()));
    out.bytes(address);
  }
  if (is_negative) write_soa(out, reply.ttl);
  if (question.edns_size) write_opt(out, question, reply.rcode);
  return out.done();
}

}  // namespace

std::expected<DnsQuestion, DnsError> read_dns_query(Bytes packet) {
  Reader reader(packet);
  DnsQuestion question;
  question.id = reader.u16();
  const unsigned flags = reader.u16();
  const std::size_t questions = reader.u16();
  const std::size_t answers = reader.u16();
  const std::size_t authorities = reader.u16();
  const std::size_t additional = reader.u16();
  if (!reader.ok()) return std::unexpected(DnsError{.reason = "no DNS header"});
  // An answer to an answer can go on for ever.
  if ((flags & kResponse) != 0) return std::unexpected(DnsError{.reason = "a DNS answer"});
  question.opcode = flags >> kOpcodeShift & 0xfU;
  question.recursion_desired = (flags & kRecursionDesired) != 0;
  question.checking_disabled = (flags & kCheckingDisabled) != 0;

  const auto wrong = [&](const char* reason, Rcode rcode = Rcode::format_error) {
    return std::unexpected(DnsError{reason, rcode, question});
  };
  if (packet.size() > kMaxDnsQuery) return wrong("a DNS query of more than 4096 bytes");
  if (question.opcode != 0) return wrong("a DNS message that is no query", Rcode::not_implemented);
  if (questions != 1) return wrong("a DNS query without exactly one question");
  if (answers != 0 || authorities != 0) return wrong("a DNS query with records in it");

  const Bytes from_name = reader.rest();
  const std::optional<std::string> name = read_name(reader);
  if (!name) return wrong("a DNS question whose name is cut off, compressed or too long");
  question.type = reader.u16();
  question.klass = reader.u16();
  if (!reader.ok()) return wrong("a DNS question that is cut off");
  const Bytes echo = from_name.first(from_name.size() - reader.rest().size());
  question.echo.assign(echo.begin(), echo.end());

  if (additional > 1) return wrong("a DNS query with more than an OPT record behind its question");
  if (additional == 1) {
    const std::optional<Opt> opt = read_opt(reader);
    if (!opt) return wrong("a DNS query with something other than an OPT record behind it");
    question.edns_size = opt->size;
    question.dnssec_ok = opt->dnssec_ok;
    if (opt->version != 0) return wrong("a DNS query of a later EDNS", Rcode::bad_version);
  }
  if (!reader.at_end()) return wrong("a DNS query with bytes behind its end");
  if (question.klass != kIn) return wrong("a DNS question that is not of class IN", Rcode::refused);
  // Clients conclude from "there is no root" that there is nothing.
  if (name->empty()) return wrong("a DNS question for the root", Rcode::refused);
  Result<std::string> canonical = canonical_wire_name(*name);
  if (!canonical) return wrong("a DNS question for what is no host name", Rcode::no_such_name);
  question.name = *std::move(canonical);
  return question;
}

std::vector<std::byte> dns_answer(const DnsQuestion& question, std::span<const IpAddress> addresses,
                                  std::uint32_t ttl, Transport transport) {
  const bool wants_v4 = question.type == kDnsA;
  const std::size_t size = wants_v4 ? 4 : 16;
  const std::size_t record = 12 + size;
  const std::size_t room = longest_answer(question, transport) - kHeader - question.echo.size() -
                           (question.edns_size ? kOptRecord : 0);
  Reply reply{.ttl = ttl};
  if (wants_v4 || question.type == kDnsAaaa)
    for (const IpAddress& address : addresses) {
      if (address.is_v4() != wants_v4) continue;
      if ((reply.addresses.size() + 1) * record > room) {
        reply.truncated = true;
        break;
      }
      reply.addresses.push_back(std::as_bytes(std::span(address.bytes())).last(size));
    }
  return write(question, reply);
}

std::vector<std::byte> dns_refusal(const DnsQuestion& question, Rcode rcode) {
  return write(question, {.rcode = rcode, .ttl = kRefusalTtl});
}

Result<std::optional<Bytes>> next_dns_message(Bytes so_far) {
  Reader reader(so_far);
  const std::size_t size = reader.u16();
  if (!reader.ok()) return std::nullopt;
  if (size > kMaxDnsQuery) return fail("a DNS query of more than 4096 bytes");
  const Bytes message = reader.take(size);
  if (!reader.ok()) return std::nullopt;
  return message;
}

std::vector<std::byte> with_dns_length(Bytes message) {
  Writer out;
  out.u16(static_cast<unsigned>(message.size()));
  out.bytes(message);
  return out.done();
}

}  // namespace belljar::broker
