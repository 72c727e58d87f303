#include "server/message.h"

#include <algorithm>
#include <boost/json.hpp>

#include "base/utf8.h"
#include "server/host_trouble.h"

namespace belljar::server {
namespace {

namespace json = boost::json;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Fault host_fault(const Error& error) { return is_disk_full(error) ? kDiskFull : kHostFailed; }

}  // namespace

const std::string* Request::header(std::string_view name) const {
  const std::string* found = nullptr;
  for (const auto& [key, value] : headers) {
    if (key != name) continue;
    if (found != nullptr) return nullptr;  // which of them counts is anybody's guess
    found = &value;
  }
  return found;
}

Response answer_json(const json::value& value, int status) {
  std::string text = json::serialize(value);
  // A guest's file name may hold any byte.
  if (!is_utf8(text)) text = repair_utf8(text);
  text.push_back('\n');
  return {
      .status = status, .headers = {{"Content-Type", "application/json"}}, .body = std::move(text)};
}

Response refuse(Fault fault, std::string_view message, std::string_view hint) {
  if (hint.empty()) hint = fault.hint;
  json::object error{{"type", fault.type}, {"message", message}, {"hint", hint}};
  Response response = answer_json(json::object{{"error", std::move(error)}}, fault.status);
  if (fault.status == kTooMany.status || fault.status == kUnavailable.status)
    response.headers.emplace_back("Retry-After", "1");
  if (fault.status == kUnauthorized.status)
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

Response refuse(Fault fault, const Error& error) {
  if (is_of_the_host(error)) {
    const Error said = without_place(error);
    return refuse(host_fault(error), Error{said.what, said.err, {}}.message(), said.hint);
  }
  return refuse(fault, Error{error.what, error.err, {}}.message(), error.hint);
}

json::object error_object(Fault fault, const Error& error) {
  const bool is_hosts = is_of_the_host(error);
  const Error said = is_hosts ? without_place(error) : error;
  const Fault told_as = is_hosts ? host_fault(error) : fault;
  const std::string message = Error{said.what, said.err, {}}.message();
  const std::string_view hint = said.hint.empty() ? told_as.hint : std::string_view(said.hint);
  return {{"type", told_as.type}, {"message", message}, {"hint", hint}};
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 206:
      return "Partial Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 406:
      return "Not Acceptable";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 416:
      return "Range Not Satisfiable";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 507:
      return "Insufficient Storage";
    default:
      return status < 400 ? "OK" : "Error";
  }
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high << 4 | low);
      i += 2;
    }
    if (c == '\0') return std::nullopt;
    bytes.push_back(c);
  }
  return bytes;
}

std::string percent_encode(std::string_view text, std::string_view plain) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
        plain.find(c) != plain.npos)
      encoded.push_back(c);
    else
      encoded.append({'%', kDigits[byte >> 4U], kDigits[byte & 0xfU]});
  }
  return encoded;
}

std::optional<std::string> query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const std::size_t equals = pair.find('=');
    if (pair.substr(0, equals) != name) continue;
    if (equals == std::string_view::npos) return std::string();
    return percent_decode(pair.substr(equals + 1));
  }
  return std::nullopt;
}

}  // namespace belljar::server
