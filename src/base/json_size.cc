#include "base/json_size.h"

#include <algorithm>
#include <boost/json.hpp>

namespace belljar {

namespace json = boost::json;

std::size_t weight(const json::value& value, std::size_t enough) {
  if (const json::object* object = value.if_object()) return weight(*object, enough);
  std::size_t sum = sizeof value;
  if (const json::string* text = value.if_string()) sum += text->size();
  if (const json::array* list = value.if_array())
    for (const json::value& one : *list) {
      if (sum > enough) break;
      sum += weight(one, enough - sum);
    }
  return sum;
}

std::size_t weight(const json::object& object, std::size_t enough) {
  std::size_t sum = sizeof object;
  for (const json::key_value_pair& one : object) {
    if (sum > enough) break;
    sum += one.key().size();
    sum += weight(one.value(), enough - std::min(sum, enough));
  }
  return sum;
}

}  // namespace belljar
