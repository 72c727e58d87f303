// Members of JSON that others wrote: there or not, of the kind that is wanted or another.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>

namespace belljar {

// Empty: there is none, or it is no text.
inline std::string text_of(const boost::json::object& object, std::string_view name) {
  const boost::json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

}  // namespace belljar
