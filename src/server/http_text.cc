#include "server/http_text.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace belljar::server {

std::chrono::milliseconds time_for(std::chrono::milliseconds base, std::uint64_t bytes) {
  return base + std::chrono::milliseconds(bytes * 1000 / kLeastRate);
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return result;
}

std::string_view take_host(std::string_view target, Request& request) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (lower(target.substr(0, scheme.size())) != scheme) continue;
    target.remove_prefix(scheme.size());
    const std::string_view host = target.substr(0, target.find_first_of("/?"));
    target.remove_prefix(host.size());
    for (auto& [name, value] : request.headers)
      if (name == "host") value = host;
    return target;
  }
  return target;
}

bool has_folded_line(std::string_view head) {
  return head.find("\n ") != head.npos || head.find("\n\t") != head.npos;
}

std::string head_text(const Response& response, std::string_view framing, bool keeps_alive) {
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " " +
                     std::string(reason_phrase(response.status)) + "\r\n";
  for (const auto& [name, value] : response.headers)
    text.append(name).append(": ").append(value).append("\r\n");
  text += "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n";
  text.append(framing);
  text += keeps_alive ? "\r\n" : "Connection: close\r\n\r\n";
  return text;
}

std::string chunk_head(std::size_t size) {
  std::array<char, 20> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), size, 16).ptr;
  return std::string(text.data(), end).append("\r\n");
}

}  // namespace belljar::server
