#include "broker/http_head.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "broker/http_characters.h"
#include "policy/host_name.h"

namespace belljar::broker {
namespace {

constexpr std::string_view kSpace = " \t";
constexpr std::uint16_t kHttpPort = 80;
constexpr std::size_t kMaxLengthDigits = 18;  // far from where numbers wrap, here and elsewhere

// Fields that say where a request goes or ends. They are not to be hidden, moved or repeated.
constexpr std::array<std::string_view, 5> kDecisive = {
    "host", "content-length", "transfer-encoding", "upgrade", "connection"};

bool is_decisive(std::string_view name) {
  return std::ranges::find(kDecisive, name) != kDecisive.end();
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_character);
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) + 1 - first);
}

// Decimal, and as every program reads it: no sign, no leading zero (octal to some).
template <class Number>
std::optional<Number> parse_number(std::string_view text, std::size_t most_digits) {
  const bool is_plain = !text.empty() && text.size() <= most_digits &&
                        std::ranges::all_of(text, is_digit) && (text == "0" || text.front() != '0');
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!is_plain || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

struct Field {
  std::string name;  // lower case
  std::string_view value;
};

Result<Field> parse_field(std::string_view line) {
  if (line.starts_with(' ') || line.starts_with('\t')) return fail("http: a folded header");
  const std::size_t colon = line.find(':');
  if (colon == line.npos || !is_token(line.substr(0, colon)))
    return fail("http: a header without a proper name");
  Field field{lower(line.substr(0, colon)), trimmed(line.substr(colon + 1))};
  // CGI and its children know no difference between the two.
  std::string dashed = field.name;
  std::ranges::replace(dashed, '_', '-');
  if (dashed != field.name && is_decisive(dashed))
    return fail("http: a header that some servers take for " + dashed);
  return field;
}

// Fields named in Connection are dropped by the next proxy.
Status check_connection(std::string_view value) {
  while (!value.empty()) {
    const std::size_t comma = std::min(value.find(','), value.size());
    const std::string option = lower(trimmed(value.substr(0, comma)));
    if (is_decisive(option) && option != "upgrade") return fail("http: Connection names " + option);
    value.remove_prefix(std::min(comma + 1, value.size()));
  }
  return {};
}

}  // namespace

std::optional<HttpHost> parse_http_host(std::string_view text) {
  HttpHost host;
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == text.npos) return std::nullopt;
    const std::string_view inside = text.substr(1, close - 1);
    if (inside.find(':') != inside.npos) host.address = IpAddress::parse(inside);
    if (!host.address) return std::nullopt;
    port = text.substr(close + 1);
  } else {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const std::string_view name = text.substr(0, colon);
    port = text.substr(colon);
    host.address = IpAddress::parse(name);
    if (!host.address) {
      Result<std::string> canonical = canonical_wire_name(name);
      if (!canonical) return std::nullopt;
      host.name = *std::move(canonical);
    }
  }
  if (host.address) host.name = host.address->text();
  if (port.empty()) return host;
  host.port = parse_number<std::uint16_t>(port.substr(1), 5);
  if (!port.starts_with(':') || host.port.value_or(0) == 0) return std::nullopt;
  return host;
}

bool resembles_request(std::string_view line) {
  if (line.find("HTTP/") != line.npos || line.find("://") != line.npos) return true;
  const std::size_t space = std::min(line.find_first_of(kSpace), line.size());
  const std::string_view target = trimmed(line.substr(space));
  return target.starts_with('/') || target.starts_with('*');
}

Status HttpHead::take_request_line(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == last) return fail("http: a request without a version");
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  method_ = line.substr(0, first);
  is_1_0_ = version == "HTTP/1.0";
  if (!is_token(method_)) return fail("http: a method that is no word");
  if (!is_1_0_ && version != "HTTP/1.1") return fail("http: an unknown version");
  if (target.empty() || !std::ranges::all_of(target, is_visible))
    return fail("http: white space in the request line");
  return take_target(target);
}

Status HttpHead::take_target(std::string_view target) {
  constexpr std::string_view kScheme = "http://";
  if (is_connect()) {
    target_ = parse_http_host(target);
    if (!target_ || !target_->port) return fail("http: CONNECT without HOST:PORT");
    return {};
  }
  if (target.starts_with('/') || (target == "*" && method_ == "OPTIONS")) return {};
  if (lower(target.substr(0, kScheme.size())) != kScheme)
    return fail("http: a target that is neither a path nor http://");
  target.remove_prefix(kScheme.size());
  target_ = parse_http_host(target.substr(0, target.find_first_of("/?")));
  if (!target_) return fail("http: a target whose host is no host");
  return {};
}

Status HttpHead::take_field(std::string_view line) {
  const Field field = TRY(parse_field(line));
  if (field.name == "host") return take_host(field.value);
  if (field.name == "content-length") return take_content_length(field.value);
  if (field.name == "transfer-encoding") return take_transfer_encoding(field.value);
  if (field.name == "upgrade") return take_upgrade(field.value);
  if (field.name == "connection") return check_connection(field.value);
  return {};
}

Status HttpHead::take_host(std::string_view value) {
  if (host_) return fail("http: two Host headers");
  host_ = parse_http_host(value);
  if (!host_) return fail("http: a Host that is no host");
  return {};
}

Status HttpHead::take_content_length(std::string_view value) {
  if (content_length_) return fail("http: two Content-Length headers");
  content_length_ = parse_number<std::uint64_t>(value, kMaxLengthDigits);
  if (!content_length_) return fail("http: a Content-Length that is no plain number");
  return {};
}

Status HttpHead::take_transfer_encoding(std::string_view value) {
  if (chunked_) return fail("http: two Transfer-Encoding headers");
  if (lower(value) != "chunked") return fail("http: a Transfer-Encoding other than chunked");
  chunked_ = true;
  return {};
}

Status HttpHead::take_upgrade(std::string_view value) {
  if (upgrade_) return fail("http: two Upgrade headers");
  upgrade_ = lower(value);
  return {};
}

Status HttpHead::finish() {
  if (!host_) return fail("http: no Host header");
  if (target_) {
    const std::uint16_t port = is_connect() ? *target_->port : kHttpPort;
    if (target_->name != host_->name || target_->port.value_or(port) != host_->port.value_or(port))
      return fail("http: the target and the Host header differ");
  }
  if (chunked_ && content_length_) return fail("http: both Content-Length and Transfer-Encoding");
  if (chunked_ && is_1_0_) return fail("http: Transfer-Encoding in HTTP/1.0");
  // A server that changes its protocol early would read the body as that protocol. Not to h2c,
  // which comes after the body (RFC 7540, 3.2), and which Java's client asks for with every
  // request.
  const bool may_have_body = !is_connect() && upgrade_.value_or("h2c") == "h2c";
  if (!may_have_body && (chunked_ || content_length() != 0))
    return fail("http: a body with CONNECT or Upgrade");
  return {};
}

Status check_trailer_field(std::string_view line) {
  const Field field = TRY(parse_field(line));
  if (is_decisive(field.name)) return fail("http: " + field.name + " behind a body");
  return {};
}

}  // namespace belljar::broker
