#include "policy/host_name.h"

#include <idn2.h>

#include <algorithm>
#include <memory>

namespace belljar {
namespace {

constexpr std::size_t kMaxName = 253;  // RFC 1035, as text without the last dot
constexpr std::size_t kMaxLabel = 63;
// Longer text is not worth mapping: even of four-byte characters no name is left.
constexpr std::size_t kMaxWritten = 4 * kMaxName;

std::unexpected<Error> not_a_name(std::string_view name, std::string_view why,
                                  std::string hint = {}) {
  return fail("\"" + std::string(name) + "\" is no host name: " + std::string(why), 0,
              std::move(hint));
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }
bool is_label_char(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '_'; }

std::string_view wrong_with_label(std::string_view label) {
  if (label.empty()) return "a part of it is empty";
  if (label.size() > kMaxLabel) return "a part of it has more than 63 characters";
  if (!std::ranges::all_of(label, is_label_char))
    return "only letters, digits, \"-\", \"_\" and dots can be part of one";
  if (label.starts_with('-') || label.ends_with('-')) return "a part of it begins or ends in \"-\"";
  return {};
}

// https://url.spec.whatwg.org/#ends-in-a-number-checker
bool is_number(std::string_view label) {
  if (label.starts_with("0x")) return std::ranges::all_of(label.substr(2), is_hex);
  return std::ranges::all_of(label, is_digit);
}

Result<std::string> to_ascii(std::string_view name) {
  if (name.size() > kMaxWritten) return not_a_name(name, "it is too long");
  std::uint8_t* mapped = nullptr;
  const std::string text(name);
  const int error = ::idn2_lookup_u8(reinterpret_cast<const std::uint8_t*>(text.c_str()), &mapped,
                                     IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);
  const std::unique_ptr<std::uint8_t, void (*)(void*)> owned(mapped, ::idn2_free);
  if (error != IDN2_OK) return not_a_name(name, ::idn2_strerror(error));
  return std::string(reinterpret_cast<const char*>(mapped));
}

}  // namespace

Result<std::string> canonical_wire_name(std::string_view name) {
  std::string result(name.substr(0, name.size() - (name.ends_with('.') ? 1 : 0)));
  std::ranges::transform(result, result.begin(), lower);
  if (result.empty()) return not_a_name(name, "it is empty");
  if (result.size() > kMaxName) return not_a_name(name, "it has more than 253 characters");
  std::string_view rest = result;
  for (;;) {
    const std::size_t dot = rest.find('.');
    const std::string_view label = rest.substr(0, dot);
    if (std::string_view why = wrong_with_label(label); !why.empty()) return not_a_name(name, why);
    if (dot == rest.npos) break;
    rest.remove_prefix(dot + 1);
  }
  if (is_number(rest))
    return not_a_name(name, "it ends in a number, as an address does",
                      "write an IPv4 address as four decimal numbers");
  return result;
}

Result<std::string> canonical_name(std::string_view name) {
  // The mapping works on C strings.
  if (name.find('\0') != name.npos) return not_a_name(name, "it holds a NUL byte");
  if (is_ascii(name)) return canonical_wire_name(name);
  return canonical_wire_name(TRY(to_ascii(name)));
}

}  // namespace belljar
