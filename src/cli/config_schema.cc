#include "cli/config_schema.h"

#include <boost/json.hpp>

#include "policy/keys.h"
#include "policy/permissions.h"
#include "policy/profiles.h"
#include "policy/server_keys.h"
#include "policy/session_keys.h"

namespace belljar::cli {
namespace {

namespace json = boost::json;

json::object either(json::object one, json::object other) {
  return {{"anyOf", json::array{std::move(one), std::move(other)}}};
}

json::object text() { return {{"type", "string"}, {"minLength", 1}}; }

json::object one_of(const Key& key) {
  return {{"enum", json::array(key.choices.begin(), key.choices.end())}};
}

json::object list_of(const json::object& item) {
  return either(item, {{"type", "array"}, {"items", item}});
}

json::object table_of(json::object properties) {
  return {
      {"type", "object"}, {"additionalProperties", false}, {"properties", std::move(properties)}};
}

json::object tables_of(json::object table) {
  return {{"type", "object"}, {"additionalProperties", std::move(table)}};
}

json::object value_of(const Key& key) {
  switch (key.kind) {
    case Kind::flag:
      return {{"type", "boolean"}};
    case Kind::choice:
      return one_of(key);
    case Kind::count:
      return either({{"type", "integer"}, {"minimum", key.least}}, {{"const", "unlimited"}});
    case Kind::duration:
      return either({{"type", "integer"}, {"minimum", 1}},
                    {{"type", "string"}, {"pattern", "^([0-9]+(ms|s|m|h)?|unlimited)$"}});
    case Kind::name:
    case Kind::path:
    case Kind::tmp:
      return text();
    case Kind::promises:
      return list_of(one_of(key));
    case Kind::assignments:
      return either({{"type", "object"}, {"additionalProperties", {{"type", "string"}}}},
                    list_of({{"type", "string"}, {"pattern", "^[^=]+="}}));
    case Kind::mounts:
      return list_of({{"type", "string"}, {"pattern", "^[^:]+:.+"}});
    case Kind::ports:
      return list_of({{"type", "string"}, {"pattern", "^[1-9][0-9]{0,4}:[1-9][0-9]{0,4}$"}});
    case Kind::paths:
    case Kind::globs:
    case Kind::hosts:
    case Kind::names:
      return list_of(text());
  }
  return {};
}

json::object described(json::object schema, std::string_view help) {
  schema["description"] = help;
  return schema;
}

json::object policy_keys() {
  json::object properties;
  for (const Key& key : keys()) properties[key.name] = described(value_of(key), key.help);
  return properties;
}

json::object profile_keys() {
  json::object properties = policy_keys();
  properties.erase("profile");
  properties["extends"] = described(text(), "the profile to start from");
  properties["extends"].as_object()["default"] = kDefaultProfile;
  return properties;
}

json::object task_keys() {
  json::object properties = policy_keys();
  properties["run"] = described(list_of(text()), "commands for /bin/sh -c, one after the other");
  properties["dir"] = described(text(), "where it runs, and where its paths start");
  properties["depends"] = described(list_of(text()), "tasks that run before it");
  properties["description"] = described({{"type", "string"}}, "one line for `belljar tasks`");
  return properties;
}

json::object session_key_values() {
  json::object properties;
  for (const SessionKey& key : session_keys())
    properties[key.name] = described(value_of({.name = key.name, .kind = key.kind}), key.help);
  return properties;
}

// By tool: what it may do, or what it may with commands and paths that match a pattern.
json::object permissions_schema() {
  const json::object one{{"type", "string"}, {"enum", {"auto", "ask", "deny"}}};
  json::object rule;
  rule["anyOf"] = json::array{one, tables_of(one)};
  json::object properties{{"default", one}};
  for (const std::string_view tool : tool_names()) properties[tool] = rule;
  return described(table_of(std::move(properties)),
                   "which tools a model may use; `default` is for all others");
}

json::object server_key_values() {
  json::object properties;
  for (const ServerKey& key : server_keys())
    properties[key.name] =
        described(value_of({.name = key.name, .kind = key.kind}),
                  std::string(key.help) + " (" + std::string(key.fallback) + ")");
  return properties;
}

}  // namespace

json::object config_schema() {
  json::object schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                         {"title", "belljar.toml"}};
  for (const auto& member :
       table_of({{"sandbox", table_of(policy_keys())},
                 {"profiles", tables_of(table_of(profile_keys()))},
                 {"tasks", tables_of(table_of(task_keys()))},
                 {"session", table_of(session_key_values())},
                 {"permissions", permissions_schema()},
                 {"server", table_of(server_key_values())},
                 {"net_groups", described(tables_of(list_of(text())),
                                          "rules about hosts that @NAME stands for")}}))
    schema[member.key()] = member.value();
  return schema;
}

}  // namespace belljar::cli
