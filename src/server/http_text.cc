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
