#include "session/frames.h"

#include <cstdint>

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

std::optional<std::size_t> FrameReader::length() const {
  if (bytes_.size() - begin_ < kHeader) return std::nullopt;
  return decode_length(std::string_view(bytes_).substr(begin_));
}

Status FrameReader::feed(std::string_view bytes) {
  if (length().value_or(0) > largest_) return fail("the worker's answer is too large");
  bytes_.erase(0, begin_);
  begin_ = 0;
  bytes_.append(bytes);
  if (length().value_or(0) > largest_) return fail("the worker's answer is too large");
  return {};
}

std::optional<std::string> FrameReader::next() {
  const std::optional<std::size_t> size = length();
  if (!size || *size > largest_ || bytes_.size() - begin_ - kHeader < *size) return std::nullopt;
  std::string payload = bytes_.substr(begin_ + kHeader, *size);
  begin_ += kHeader + *size;
  return payload;
}

}  // namespace belljar::session
