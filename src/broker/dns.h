// DNS as the guest speaks it: its questions read, our answers written. No socket, no cache, no
// rules: those are the caller's. The packets are hostile; what is not exactly one plain question
// is an error, which says what to answer, if anything.
//
// What the guest can learn or say by DNS is bounded here: no record but addresses is ever written,
// and no name is compressed, followed or looked up.
// RFC 1035, RFC 2308 (negative answers), RFC 6891 (EDNS0).
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "broker/bytes.h"

namespace belljar::broker {

// A query is a name and an OPT record; padding (RFC 7830) makes the longest.
inline constexpr std::size_t kMaxDnsQuery = 4096;

inline constexpr std::uint16_t kDnsA = 1;
inline constexpr std::uint16_t kDnsAaaa = 28;

enum class Rcode : std::uint8_t {
  no_error = 0,
  format_error = 1,
  server_failure = 2,
  no_such_name = 3,
  not_implemented = 4,
  refused = 5,
  bad_version = 16,  // of EDNS
};

enum class Transport { udp, tcp };

struct DnsQuestion {
  std::uint16_t id = 0;
  std::uint8_t opcode = 0;
  bool recursion_desired = false;
  bool checking_disabled = false;
  std::string name;  // canonical: lower case, no trailing dot
  std::uint16_t type = 0;
  std::uint16_t klass = 0;
  std::optional<std::uint16_t> edns_size;  // of the longest UDP answer; where EDNS was used
  bool dnssec_ok = false;
  std::vector<std::byte> echo;  // the question as asked, since some mix the case and compare
  bool operator==(const DnsQuestion&) const = default;
};

struct DnsError {
  std::string reason;  // for the report
  Rcode rcode = Rcode::format_error;
  std::optional<DnsQuestion> question;  // as much as was read; nothing where no answer is due
};

std::expected<DnsQuestion, DnsError> read_dns_query(Bytes packet);

// The addresses of the family that was asked for, in their order. Where there are none (for every
// other type: always) an answer without records, and with the SOA that lets clients remember it.
// Over UDP what does not fit is left out and the answer marked as truncated.
std::vector<std::byte> dns_answer(const DnsQuestion& question, std::span<const IpAddress> addresses,
                                  std::uint32_t ttl, Transport transport);

// For a name that is not allowed, no_such_name: musl waits out its time for every other code,
// glibc asks again. server_failure means: try again.
std::vector<std::byte> dns_refusal(const DnsQuestion& question, Rcode rcode);

// ---- over TCP each message has two bytes of length before it ----

// The first message of a stream, without its length; nothing while there is more to come. It and
// two more bytes are to be taken off the stream. An error ends the stream.
Result<std::optional<Bytes>> next_dns_message(Bytes so_far);
std::vector<std::byte> with_dns_length(Bytes message);

}  // namespace belljar::broker
