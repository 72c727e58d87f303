#include "tools/arguments.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>

#include "base/printable.h"
#include "base/whole_number.h"
#include "policy/keys.h"

namespace belljar::tools {
namespace {

namespace json = boost::json;

// 3.0 is an integer in JSON Schema.
bool is_integer(const json::value& value) {
  if (value.is_int64() || value.is_uint64()) return true;
  return value.is_double() && is_whole(value.get_double()) &&
         std::abs(value.get_double()) <= kLargestExact;
}

bool has_type(const json::value& value, std::string_view type) {
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_bool();
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "null") return value.is_null();
  if (type == "integer") return is_integer(value);
  return type == "number" && value.is_number();
}

std::string listed(const json::array& items) {
  std::string text;
  for (const json::value& item : items)
    text.append(text.empty() ? "" : ", ").append(std::string_view(item.as_string()));
  return text;
}

std::unexpected<Failure> wrong(const std::string& where, const std::string& must) {
  return refuse(Kind::bad_argument, where + " " + must, "call the tool again with that put right");
}

Status check_type(const json::object& schema, const json::value& value, const std::string& where) {
  const json::value* type = schema.if_contains("type");
  if (type == nullptr) return {};
  if (type->is_string()) {
    if (has_type(value, type->get_string())) return {};
    return wrong(where, "must be of type " + std::string(type->get_string()));
  }
  for (const json::value& one : type->as_array())
    if (has_type(value, one.as_string())) return {};
  return wrong(where, "must be of type " + listed(type->as_array()));
}

// In characters, as JSON Schema counts.
std::size_t length(const json::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// minimum and maximum, and the same of Length, Items and Properties.
Status check_bounds(const json::object& schema, const std::string& least, const std::string& most,
                    double value, const std::string& where, const std::string& unit) {
  const std::string must = unit.empty() ? "must be" : "must have";
  auto bound = [&](const std::string& key) { return schema.at(key).to_number<double>(); };
  auto written = [&](const std::string& key) { return json::serialize(schema.at(key)) + unit; };
  if (schema.contains(least) && value < bound(least))
    return wrong(where, must + " at least " + written(least));
  if (schema.contains(most) && value > bound(most))
    return wrong(where, must + " at most " + written(most));
  return {};
}

// A name that is not known, before all else: it explains what is missing.
Status check_names(const json::object& properties, const json::object& object,
                   const std::string& prefix) {
  for (const json::key_value_pair& member : object) {
    if (properties.contains(member.key())) continue;
    json::array names;
    std::vector<std::string_view> views;
    for (const json::key_value_pair& one : properties) {
      names.emplace_back(one.key());
      views.emplace_back(one.key());
    }
    const std::string_view near = nearest(member.key(), views);
    const std::string name = prefix + printable(member.key());
    const std::string what = "is not known; there are " + listed(names);
    if (near.empty()) return wrong(name, what);
    return refuse(Kind::bad_argument, name + " " + what, "did you mean " + std::string(near) + "?");
  }
  return {};
}

Status check_object(const json::object& schema, const json::object& object,
                    const std::string& where) {
  static const json::object none;
  const std::string prefix = where.empty() ? "" : where + ".";
  const json::value* known = schema.if_contains("properties");
  const json::object& properties = known != nullptr ? known->as_object() : none;
  const json::value* others = schema.if_contains("additionalProperties");
  if (others != nullptr && others->is_bool() && !others->get_bool())
    TRY(check_names(properties, object, prefix));
  if (const json::value* required = schema.if_contains("required"))
    for (const json::value& name : required->as_array())
      if (!object.contains(name.as_string()))
        return wrong(prefix + std::string(name.as_string()), "is missing");
  for (const json::key_value_pair& member : object) {
    const std::string name = prefix + printable(member.key());
    if (const json::value* property = properties.if_contains(member.key()))
      TRY(check_value(property->as_object(), member.value(), name));
    else if (others != nullptr && others->is_object())
      TRY(check_value(others->get_object(), member.value(), name));
  }
  return {};
}

// A schema has no word for a sum.
Status check_variables(const json::object& arguments) {
  const json::value* given = arguments.if_contains("environment");
  if (given == nullptr) return {};
  std::size_t sum = 0;
  for (const json::key_value_pair& variable : given->as_object())
    sum += variable.key().size() + variable.value().as_string().size();
  if (sum <= kMaxVariableBytes) return {};
  return wrong("environment", "must have at most 1 MiB");
}

}  // namespace

Status check_value(const json::object& schema, const json::value& value, const std::string& where) {
  TRY(check_type(schema, value, where));
  if (const json::value* choices = schema.if_contains("enum"))
    if (std::ranges::find(choices->as_array(), value) == choices->as_array().end())
      return wrong(where, "must be one of " + listed(choices->as_array()));
  if (value.is_number())
    return check_bounds(schema, "minimum", "maximum", value.to_number<double>(), where, "");
  if (value.is_string())
    return check_bounds(schema, "minLength", "maxLength",
                        static_cast<double>(length(value.get_string())), where, " characters");
  if (value.is_object()) {
    TRY(check_bounds(schema, "minProperties", "maxProperties",
                     static_cast<double>(value.get_object().size()), where, " members"));
    return check_object(schema, value.get_object(), where);
  }
  if (!value.is_array()) return {};
  TRY(check_bounds(schema, "minItems", "maxItems", static_cast<double>(value.get_array().size()),
                   where, " items"));
  if (const json::value* items = schema.if_contains("items"))
    for (std::size_t i = 0; i < value.get_array().size(); ++i)
      TRY(check_value(items->as_object(), value.get_array()[i],
                      where + "[" + std::to_string(i) + "]"));
  return {};
}

Status check_arguments(const Tool& tool, const json::object& arguments) {
  TRY(check_object(tool.input_schema, arguments, ""));
  return tool.name == "process_start" ? check_variables(arguments) : Status();
}

}  // namespace belljar::tools
