#include "server/openapi.h"

#include <algorithm>
#include <boost/json.hpp>
#include <set>

#include "server/http_text.h"
#include "tools/tool_table.h"

namespace belljar::server {
namespace {

namespace json = boost::json;

json::object reference(std::string_view schema) {
  return {{"$ref", "#/components/schemas/" + std::string(schema)}};
}

json::object content(std::string_view what) {
  if (what == "bytes")
    return {{"application/octet-stream", {{"schema", {{"type", "string"}, {"format", "binary"}}}}}};
  if (what == "text") return {{"text/plain", {{"schema", {{"type", "string"}}}}}};
  if (what == "html") return {{"text/html", {{"schema", {{"type", "string"}}}}}};
  if (what == "events") return {{"text/event-stream", {{"schema", reference("Event")}}}};
  if (what == "form")
    return {{"multipart/form-data", {{"schema", reference("SkillForm")}}},
            {"application/zip", {{"schema", {{"type", "string"}, {"format", "binary"}}}}}};
  return {{"application/json", {{"schema", reference(what)}}}};
}

// {path*} is how the table writes what may hold slashes.
std::string path_of(std::string_view pattern) {
  std::string path(pattern);
  std::erase(path, '*');
  return path;
}

json::object schema_of_part(std::string_view name) {
  json::object schema{{"type", "string"}};
  if (name != "tool") return schema;
  json::array names;
  for (const tools::Tool& tool : tools::all_tools()) names.emplace_back(tool.name);
  schema["enum"] = std::move(names);
  return schema;
}

// Sessions and skills are named so; approvals are not.
bool is_owned(std::string_view part, std::string_view pattern) {
  return part == "session" || (part == "id" && !pattern.starts_with("/v1/approvals"));
}

json::array parameters_of(const Route& route) {
  json::array list;
  std::string_view rest = route.pattern;
  while (true) {
    const std::size_t open = rest.find('{');
    if (open == std::string_view::npos) break;
    const std::size_t close = rest.find('}', open);
    const std::string_view part = rest.substr(open + 1, close - open - 1);
    json::object parameter{{"name", path_of(part)},
                           {"in", "path"},
                           {"required", true},
                           {"schema", schema_of_part(part)}};
    if (is_owned(part, route.pattern))
      parameter["description"] =
          "your own by its name; another token's, if you may use it, NAME@TOKEN";
    list.push_back(std::move(parameter));
    rest.remove_prefix(close + 1);
  }
  for (const QueryField& field : route.query)
    list.push_back({{"name", field.name},
                    {"in", "query"},
                    {"required", false},
                    {"description", field.help},
                    {"schema", {{"type", "string"}}}});
  return list;
}

// How a request can be refused, by what its route is.
std::set<int> refusals_of(const Route& route) {
  // What is no request, comes from a foreign page or takes too long reaches no route; a body
  // where none is taken is too large.
  std::set<int> statuses = {400, 403, 408, 413, 431, 503};
  if (route.right != Right::none) statuses.insert({401, 429});
  if (route.pattern.find('{') != std::string_view::npos) statuses.insert(404);
  if (!route.takes.empty() && route.takes != "bytes") statuses.insert(415);
  statuses.insert(route.refusals.begin(), route.refusals.end());
  return statuses;
}

json::object responses_of(const Route& route) {
  json::object good{{"description", route.summary}};
  if (!route.gives.empty()) good["content"] = content(route.gives);
  // What is streamed on request is both.
  if (route.gives.ends_with("Result") || route.gives == "McpMessage")
    good["content"].as_object()["text/event-stream"] = {{"schema", reference("Event")}};
  json::object responses;
  responses[std::to_string(route.status)] = std::move(good);
  if (route.gives == "bytes")
    responses["206"] = {{"description", "a part of it"}, {"content", content("bytes")}};
  if (route.gives == "McpMessage") responses["202"] = {{"description", "it was heard"}};
  for (const int status : refusals_of(route))
    responses[std::to_string(status)] = {{"description", reason_phrase(status)},
                                         {"content", content("Error")}};
  return responses;
}

// A session is made and interrupted without one, a file may be empty, a tool may need nothing.
bool needs_body(const Route& route) {
  constexpr std::string_view kWithout[] = {"SessionRequest", "InterruptRequest", "bytes",
                                           "ToolArguments", "DispatchRequest"};
  return std::ranges::find(kWithout, route.takes) == std::end(kWithout);
}

json::object operation_of(const Route& route) {
  json::object operation{{"summary", route.summary},
                         {"tags", json::array{route.tag}},
                         {"parameters", parameters_of(route)},
                         {"responses", responses_of(route)},
                         {"x-scope", name(route.right)}};
  if (route.right == Right::none) operation["security"] = json::array{};
  if (!route.takes.empty())
    operation["requestBody"] = {{"required", needs_body(route)}, {"content", content(route.takes)}};
  return operation;
}

std::string escape(std::string_view text) {
  std::string result;
  for (char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else
      result.push_back(c);
  }
  return result;
}

}  // namespace

json::object openapi(std::span<const Route> table) {
  json::object paths;
  for (const Route& route : table) {
    json::value& path = paths[path_of(route.pattern)];
    if (path.is_null()) path = json::object();
    path.as_object()[lower(route.method)] = operation_of(route);
  }
  json::object bearer{{"type", "http"}, {"scheme", "bearer"}};
  json::object components;
  components["schemas"] = schemas();
  components["securitySchemes"] = {{"token", std::move(bearer)}};
  json::object document;
  document["openapi"] = "3.1.0";
  document["info"] = {{"title", "belljar"},
                      {"version", "1"},
                      {"description", "Sessions, tools and files under glass."}};
  document["paths"] = std::move(paths);
  document["components"] = std::move(components);
  document["security"] = json::array{json::object{{"token", json::array{}}}};
  return document;
}

std::string openapi_page(std::span<const Route> table) {
  std::string page =
      "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>belljar</title>"
      "<style>body{font:15px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
      "table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3em .6em;"
      "border-bottom:1px solid #ddd;vertical-align:top}code{font-size:14px}</style>"
      "<h1>belljar</h1><p>The machine-readable form is <a href=\"/openapi.json\">/openapi.json</a>."
      " Every request but those of scope none carries <code>Authorization: Bearer "
      "TOKEN</code>.</p>";
  std::string_view tag;
  for (const Route& route : table) {
    if (route.tag != tag) {
      if (!tag.empty()) page += "</table>";
      tag = route.tag;
      page += "<h2>" + escape(tag) +
              "</h2><table><tr><th>request<th>scope<th>takes<th>gives<th>what it does</tr>";
    }
    page += "<tr><td><code>" + std::string(route.method) + " " + escape(path_of(route.pattern)) +
            "</code><td>" + std::string(name(route.right)) + "<td>" + escape(route.takes) + "<td>" +
            escape(route.gives) + "<td>" + escape(route.summary);
    for (const QueryField& field : route.query)
      page += "<br><code>?" + escape(field.name) + "=</code> " + escape(field.help);
    page += "</tr>";
  }
  page += "</table><h2>schemas</h2>";
  for (const auto& member : schemas())
    page += "<h3>" + escape(member.key()) + "</h3><pre>" + escape(json::serialize(member.value())) +
            "</pre>";
  return page + "</html>\n";
}

}  // namespace belljar::server
