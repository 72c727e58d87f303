#include "session/frames.h"

#include <cstdint>
#include <utility>

namespace belljar::session {
namespace {

constexpr std::size_t kHeader = 4;

std::size_t decode_length(std::string_view bytes) {
  std::uint32_t length = 0;
  for (std::size_t i = kHeader; i-- > 0;)
    length = length << 8 | static_cast<unsigned char>(bytes[i]);
  return length;
}

}  // namespace

std::string frame(std::string_view payload) {
  std::string bytes;
  bytes.reserve(kHeader + payload.size());
  for (std::size_t i = 0; i < kHeader; ++i)
    bytes.push_back(static_cast<char>(payload.size() >> (8 * i) & 0xff));
  return bytes.append(payload);
}

Status FrameReader::feed(std::string_view bytes) {
  auto take = [&](std::string& into, std::size_t most) {
    const std::string_view part = bytes.substr(0, most - into.size());
    into.append(part);
    bytes.remove_prefix(part.size());
    return into.size() == most;
  };
  do {
    if (header_.size() < kHeader && !take(header_, kHeader)) return {};
    const std::size_t size = decode_length(header_);
    // What came before it is still to be had.
    if (size > largest_ && !whole_.empty()) return {};
    if (size > largest_) return fail("the worker's answer is too large");
    if (payload_.empty()) payload_.reserve(size);  // taken up only as it is filled
    if (!take(payload_, size)) return {};
    whole_.push_back(std::exchange(payload_, {}));
    header_.clear();
  } while (!bytes.empty());
  return {};
}

std::optional<std::string> FrameReader::next() {
  if (whole_.empty()) return std::nullopt;
  std::string payload = std::move(whole_.front());
  whole_.pop_front();
  return payload;
}

}  // namespace belljar::session
