#include "server/mcp_message.h"

#include "base/json_size.h"

namespace belljar::server {
namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxId = 1024;  // a name under which what was answered is kept for a while

McpUnreadable unreadable(const json::value& id, int code, std::string message) {
  return {.id = id, .error = {.code = code, .message = std::move(message), .data = {}}};
}

McpResult result_of(json::object& message) {
  if (json::value* result = message.if_contains("result"); result != nullptr && result->is_object())
    return std::move(result->get_object());
  const json::object* error = object_at(message, "error");
  if (error == nullptr) return mcp_fail(mcp_code::invalid_request, "neither result nor error");
  const json::value* code = error->if_contains("code");
  const bool has_code = code != nullptr && code->is_int64();
  return mcp_fail(has_code ? static_cast<int>(code->get_int64()) : mcp_code::internal,
                  text_at(*error, "message"));
}

}  // namespace

bool is_id(const json::value& value) {
  if (const json::string* text = value.if_string()) return text->size() <= kMaxId;
  return value.is_int64() || value.is_uint64();
}

const json::object* object_at(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr ? value->if_object() : nullptr;
}

const json::string* string_at(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr ? value->if_string() : nullptr;
}

std::string text_at(const json::object& object, std::string_view name) {
  const json::string* text = string_at(object, name);
  return text != nullptr ? std::string(*text) : std::string();
}

std::expected<McpMessage, McpUnreadable> read_message(std::string_view text) {
  if (text.size() > kMaxMcpMessage)
    return std::unexpected(
        unreadable(nullptr, mcp_code::parse_error, "the message is larger than 48 MiB"));
  if (has_more_values(text, kMaxJsonValues))
    return std::unexpected(
        unreadable(nullptr, mcp_code::invalid_request, "the message has too many values"));
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::value value = json::parse(text, error, {}, options);
  if (error)
    return std::unexpected(
        unreadable(nullptr, mcp_code::parse_error, "this is no JSON: " + error.message()));
  json::object* message = value.if_object();
  if (message == nullptr)
    return std::unexpected(
        unreadable(nullptr, mcp_code::invalid_request, "a message is one JSON object"));

  const json::value* given_id = message->if_contains("id");
  const json::value id = given_id != nullptr && is_id(*given_id) ? *given_id : json::value();
  auto wrong = [&](std::string what) {
    return std::unexpected(unreadable(id, mcp_code::invalid_request, std::move(what)));
  };
  if (text_at(*message, "jsonrpc") != "2.0") return wrong("jsonrpc must be \"2.0\"");
  const json::string* method = string_at(*message, "method");
  if (method == nullptr) {
    if (id.is_null()) return wrong("there is neither a method nor an id");
    return McpResponse{.id = id, .result = result_of(*message)};
  }
  if (method->size() > kMaxId) return wrong("the method's name is too long");
  json::object params;
  if (json::value* given = message->if_contains("params")) {
    if (!given->is_object())
      return std::unexpected(unreadable(id, mcp_code::invalid_params, "params must be an object"));
    params = std::move(given->get_object());
  }
  if (given_id == nullptr)
    return McpNotice{.method = std::string(*method), .params = std::move(params)};
  if (id.is_null()) return wrong("an id is a whole number, or a string of at most 1024 bytes");
  return McpRequest{.id = id, .method = std::string(*method), .params = std::move(params)};
}

std::string request_text(std::string_view id, std::string_view method, json::object params) {
  return json::serialize(json::object{
      {"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}});
}

std::string notice_text(std::string_view method, json::object params) {
  return json::serialize(
      json::object{{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}});
}

std::string response_text(const json::value& id, McpResult result) {
  json::object message{{"jsonrpc", "2.0"}, {"id", id}};
  if (result) {
    message["result"] = *std::move(result);
  } else {
    json::object error{{"code", result.error().code}, {"message", result.error().message}};
    if (!result.error().data.empty()) error["data"] = result.error().data;
    message["error"] = std::move(error);
  }
  return json::serialize(message);
}

}  // namespace belljar::server
