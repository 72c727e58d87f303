// The kinds of characters that HTTP/1 knows.
#pragma once

#include <string>
#include <string_view>

namespace belljar::broker {

// What some servers skip or split at: the white space of C and of Python, which counts two that
// are not ASCII.
inline bool is_white(char c) {
  return (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= ' ') || c == '\x85' || c == '\xa0';
}

inline bool is_visible(char c) { return c > ' ' && c < '\x7f'; }

// Of methods and names of headers.
inline bool is_token_character(char c) {
  return is_visible(c) && std::string_view("\"(),/:;<=>?@[\\]{}").find(c) == std::string_view::npos;
}

inline std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

}  // namespace belljar::broker
