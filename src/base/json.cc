#include "base/json.h"

#include <boost/json.hpp>

#include "base/utf8.h"

namespace belljar {
namespace {

namespace json = boost::json;

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
      out.append(json::serialize(json::string(repair_utf8(pair.key())))).append(": ");
      write(out, pair.value(), inner);
    });
  } else if (const auto* array = value.if_array()) {
    list(*array, '[', ']', [&](const json::value& item) { write(out, item, inner); });
  } else if (const auto* string = value.if_string()) {
    out.append(json::serialize(json::string(repair_utf8(*string))));
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
