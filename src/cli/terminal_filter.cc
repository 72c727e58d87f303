#include "cli/terminal_filter.h"

#include <utility>

namespace belljar::cli {
namespace {

constexpr unsigned char kEscape = 0x1b;
constexpr std::size_t kLongestControl = 64;

// Colours, erasing, and moving in what is shown now.
constexpr std::string_view kHarmless = "mKJABCDEFGH";

bool is_harmless_byte(unsigned char byte) {
  return byte >= 0x20
             ? byte != 0x7f
             : byte == '\n' || byte == '\r' || byte == '\t' || byte == '\b' || byte == '\a';
}

bool is_number_list(std::string_view text) {
  return text.find_first_not_of("0123456789;:") == text.npos;
}

}  // namespace

std::string TerminalFilter::pass(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (char byte : bytes) step(static_cast<unsigned char>(byte), out);
  return out;
}

// U+0080 to U+009F begin with C2 in UTF-8, and terminals obey them like ESC and a letter;
// some obey the second byte alone.
void TerminalFilter::step_text(unsigned char byte, std::string& out) {
  const bool follows = byte >= 0x80 && byte < 0xc0;
  if (follows && missing_ == 0) return;
  missing_ = follows ? missing_ - 1 : byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc2 ? 1 : 0;
  const bool after_c2 = std::exchange(after_c2_, byte == 0xc2);
  if (byte == 0xc2) return;  // with the next one
  if (after_c2 && byte >= 0x80 && byte < 0xa0) return;
  if (after_c2 && byte >= 0xa0 && byte < 0xc0) out.push_back('\xc2');
  if (is_harmless_byte(byte)) out.push_back(static_cast<char>(byte));
}

void TerminalFilter::step(unsigned char byte, std::string& out) {
  // These end whatever came before them.
  if (byte == kEscape && state_ != State::string) {
    state_ = State::escape;
    return;
  }
  switch (state_) {
    case State::text:
      return step_text(byte, out);
    case State::escape:
      control_.clear();
      state_ = byte == '[' ? State::control
               : byte == ']' || byte == 'P' || byte == '_' || byte == '^' || byte == 'X'
                   ? State::string
               : byte >= 0x20 && byte < 0x30 ? State::charset
                                             : State::text;
      return;
    case State::control:
      if (byte < 0x40) {
        control_.push_back(static_cast<char>(byte));
        if (control_.size() > kLongestControl) state_ = State::text;
        return;
      }
      state_ = State::text;
      if (kHarmless.find(static_cast<char>(byte)) != kHarmless.npos && is_number_list(control_))
        out.append("\x1b[").append(control_).push_back(static_cast<char>(byte));
      return;
    case State::string:
      // A line ends it too: the terminal has not seen its beginning.
      if (byte == '\a' || byte == '\n') state_ = State::text;
      if (byte == kEscape) state_ = State::string_escape;
      return;
    case State::string_escape:
      state_ = byte == '\\' ? State::text : State::string;
      return;
    case State::charset:
      state_ = State::text;
      return;
  }
}

}  // namespace belljar::cli
