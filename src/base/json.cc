#include "base/json.h"

#include <boost/json.hpp>

namespace belljar {
namespace {

namespace json = boost::json;

// What the first byte of a UTF-8 sequence says of its length, 0 if none begins so.
std::size_t announced_length(unsigned char first) {
  return first < 0x80                     ? 1
         : first >= 0xc2 && first <= 0xdf ? 2
         : first >= 0xe0 && first <= 0xef ? 3
         : first >= 0xf0 && first <= 0xf4 ? 4
                                          : 0;
}

// The length of the valid UTF-8 sequence at the front, 0 if there is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = announced_length(first);
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if (length == 3 && ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f)))
    return 0;
  if (length == 4 && ((first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)))
    return 0;
  return length;
}

std::string repaired(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    std::size_t length = sequence_length(text);
    result.append(length == 0 ? "\xef\xbf\xbd" : text.substr(0, length));
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

void write(std::string& out, const json::value& value, const std::string& indent) {
  const std::string inner = indent + "  ";
  auto list = [&](const auto& items, char open, char close, auto&& one) {
    out += open;
    bool first = true;
    for (const auto& item : items) {
      out.append(first ? "\n" : ",\n").append(inner);
      one(item);
      first = false;
    }
    if (!first) out.append("\n").append(indent);
    out += close;
  };
  if (const auto* object = value.if_object()) {
    list(*object, '{', '}', [&](const json::key_value_pair& pair) {
      out.append(json::serialize(json::string(repaired(pair.key())))).append(": ");
      write(out, pair.value(), inner);
    });
  } else if (const auto* array = value.if_array()) {
    list(*array, '[', ']', [&](const json::value& item) { write(out, item, inner); });
  } else if (const auto* string = value.if_string()) {
    out.append(json::serialize(json::string(repaired(*string))));
  } else if (value.is_double()) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", value.get_double());
    out.append(text);
  } else {
    out.append(json::serialize(value));
  }
}

}  // namespace

std::string pretty(const json::value& value) {
  std::string out;
  write(out, value, "");
  return out + "\n";
}

json::object promises_to_json(const std::vector<Kept>& kept) {
  json::object object;
  for (const Kept& one : kept)
    object[name(one.promise)] = json::array(one.layers.begin(), one.layers.end());
  return object;
}

json::array losses_to_json(const std::vector<Loss>& losses) {
  json::array array;
  for (const Loss& loss : losses)
    array.push_back({{"promise", name(loss.promise)},
                     {"broken", loss.broken},
                     {"what", loss.what},
                     {"hint", loss.hint}});
  return array;
}

}  // namespace belljar
