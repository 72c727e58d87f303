// Reading and writing network byte order. What is read is the guest's: a Reader never goes past
// its end, and once it was asked for more than there is, it has nothing left and is not ok().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace belljar::broker {

using Bytes = std::span<const std::byte>;

inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Reader {
 public:
  explicit Reader(Bytes bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }
  Bytes rest() const { return rest_; }

  Bytes take(std::size_t size) {
    if (size > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const Bytes taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }

  // Big-endian; 0 where there is not enough.
  std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(number(2)); }
  std::uint32_t u24() { return number(3); }
  std::uint32_t u32() { return number(4); }

 private:
  std::uint32_t number(std::size_t size) {
    std::uint32_t value = 0;
    for (const std::byte byte : take(size)) value = value << 8U | std::to_integer<unsigned>(byte);
    return value;
  }

  Bytes rest_;
  bool ok_ = true;
};

class Writer {
 public:
  std::size_t size() const { return out_.size(); }
  void bytes(Bytes bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }
  void u8(unsigned value) { out_.push_back(static_cast<std::byte>(value)); }
  void u16(unsigned value) {
    u8(value >> 8U & 0xffU);
    u8(value & 0xffU);
  }
  void u32(std::uint32_t value) {
    u16(value >> 16U);
    u16(value & 0xffffU);
  }
  std::vector<std::byte> done() { return std::move(out_); }

 private:
  std::vector<std::byte> out_;
};

}  // namespace belljar::broker
