// HTTP/1.1 as text: heads of requests, heads and chunks of answers. No socket, no library.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "server/message.h"

namespace belljar::server {

inline constexpr std::size_t kLeastRate = 64 << 10;  // bytes a second that a client must manage

// How long so many bytes may take on their way.
std::chrono::milliseconds time_for(std::chrono::milliseconds base, std::uint64_t bytes);
// Of ASCII; other bytes stay.
std::string lower(std::string_view text);
// A target with scheme and host is as one without: the host counts then, and not the Host header
// (RFC 9112, 3.2.2). Returns the rest. Two Host headers stay two, and are refused.
std::string_view take_host(std::string_view target, Request& request);
// Whether a line goes on in the next: others may read it as two (RFC 9112, 5.2).
bool has_folded_line(std::string_view head);
// `framing` is the header, or none, that says where the body ends.
std::string head_text(const Response& response, std::string_view framing, bool keeps_alive);
std::string chunk_head(std::size_t size);

}  // namespace belljar::server
