// The answer to a request that asked for a websocket: has the server agreed?
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace belljar::broker {

inline constexpr std::size_t kMaxAnswerHead = std::size_t{16} << 10;

// All of the answer so far. Nothing while its head is not whole. A status alone is not enough: an
// application may answer with any, and the server goes on reading requests.
std::optional<bool> agrees_to_websocket(std::string_view so_far);

}  // namespace belljar::broker
