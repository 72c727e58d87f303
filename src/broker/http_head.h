// The head of one HTTP/1 request, taken line by line, and what of it decides where the request
// goes and where it ends. Every line has been cut at its CRLF and holds printable ASCII and tabs
// only (broker/http_request.h sees to both).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/address.h"
#include "base/result.h"

namespace belljar::broker {

// HOST[:PORT] of a request.
struct HttpHost {
  std::string name;  // canonical: a host name without a trailing dot, or the text of `address`
  std::optional<IpAddress> address;   // where it is one
  std::optional<std::uint16_t> port;  // where it was given
  bool operator==(const HttpHost&) const = default;
};

std::optional<HttpHost> parse_http_host(std::string_view text);

// Whether a server that is generous with white space and versions may see a request in this line;
// `EHLO example` is none.
bool resembles_request(std::string_view line);

class HttpHead {
 public:
  Status take_request_line(std::string_view line);
  Status take_field(std::string_view line);
  Status finish();  // after the last field

  const std::string& method() const { return method_; }
  bool is_connect() const { return method_ == "CONNECT"; }
  bool is_websocket() const { return upgrade_ == "websocket"; }
  const HttpHost& host() const { return target_ ? *target_ : *host_; }  // once finished
  std::uint64_t content_length() const { return content_length_.value_or(0); }
  bool is_chunked() const { return chunked_; }

 private:
  Status take_target(std::string_view target);
  Status take_host(std::string_view value);
  Status take_content_length(std::string_view value);
  Status take_transfer_encoding(std::string_view value);
  Status take_upgrade(std::string_view value);

  std::string method_;
  bool is_1_0_ = false;
  std::optional<HttpHost> target_;  // of an absolute target, or of CONNECT
  std::optional<HttpHost> host_;
  std::optional<std::uint64_t> content_length_;
  bool chunked_ = false;
  std::optional<std::string> upgrade_;
};

// A field behind a chunked body.
Status check_trailer_field(std::string_view line);

}  // namespace belljar::broker
