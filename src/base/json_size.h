// How much a JSON text asks for, before it is parsed: millions of small values take a parser, and
// who copies them, seconds.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstddef>
#include <string_view>

namespace belljar {

// No request of ours has a thousand.
inline constexpr std::size_t kMaxJsonValues = 100'000;

// Whether it has more than `most` values and members. Of what is no JSON it says anything.
inline bool has_more_values(std::string_view text, std::size_t most) {
  std::size_t values = 1;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size() && values <= most; ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;  // what follows is not its end
      if (c == '"') in_string = false;
    } else {
      in_string = c == '"';
      if (c == ',' || c == '[' || c == '{') ++values;
    }
  }
  return values > most;
}

// About how many bytes a value takes. What comes after `enough` is not looked at.
std::size_t weight(const boost::json::value& value, std::size_t enough);
std::size_t weight(const boost::json::object& object, std::size_t enough);

}  // namespace belljar
