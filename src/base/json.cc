#include "base/json.h"

#include <boost/json.hpp>

#include "base/utf8.h"

namespace belljar {
namespace {

namespace json = boost::json;

// JSON lets DEL and the C1 controls (U+0080 to U+009F) stand as they are, and terminals obey
// them: U+009B begins a sequence as ESC [ does.
std::string quoted(std::string_view text) {
  const std::string plain = json::serialize(json::string(repair_utf8(text)));
  std::string safe;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const auto byte = static_cast<unsigned char>(plain[i]);
    const auto next = i + 1 < plain.size() ? static_cast<unsigned char>(plain[i + 1]) : 0U;
    const bool c1 = byte == 0xC2 && next >= 0x80 && next < 0xA0;
    if (!c1 && byte != 0x7F) {
      safe += plain[i];
      continue;
    }
    char escaped[8];
    std::snprintf(escaped, sizeof escaped, "\\u%04x", c1 ? next : byte);
    safe += escaped;
    if (c1) ++i;
  }
  return safe;
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
      out.append(quoted(pair.key())).append(": ");
      write(out, pair.value(), inner);
    });
  } else if (const auto* array = value.if_array()) {
    list(*array, '[', ']', [&](const json::value& item) { write(out, item, inner); });
  } else if (const auto* string = value.if_string()) {
    out.append(quoted(*string));
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
