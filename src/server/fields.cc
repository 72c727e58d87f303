#include "server/fields.h"

#include <algorithm>
#include <cmath>

#include "base/commas.h"
#include "base/json_size.h"
#include "base/printable.h"
#include "base/whole_number.h"
#include "policy/keys.h"

namespace belljar::server {

namespace json = boost::json;

namespace {

constexpr std::uint64_t kMaxMilliseconds = 86'400'000ULL * 365;  // far from any overflow

constexpr std::size_t kLongestNothing = 1 << 10;  // bytes

constexpr std::string_view kOneObject =
    "send one object, as {\"code\": \"1 + 1\"}; /openapi.json describes every request";

// For a person: lines and columns begin at 1.
std::string place_in(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto lines = std::ranges::count(before, '\n');
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return "line " + std::to_string(lines + 1) + ", column " +
         std::to_string(before.size() - line_start + 1);
}

bool is_json(const Request& request) {
  const std::string* type = request.header("content-type");
  if (type == nullptr) return false;
  const std::string_view essence = std::string_view(*type).substr(0, type->find(';'));
  return essence == "application/json" || essence == "application/json ";
}

}  // namespace

bool is_no_body(std::string_view body) {
  if (body.size() > kLongestNothing) return false;
  std::string rest(body);
  std::erase_if(rest, [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; });
  return rest.empty() || rest == "{}";
}

std::expected<json::object, Response> json_body(const Request& request) {
  if (request.body.empty()) return json::object();
  // A page of another origin can send text/plain without being asked for leave.
  if (!is_json(request))
    return std::unexpected(refuse(kUnsupportedMedia, "the body must be application/json"));
  if (has_more_values(request.body, kMaxJsonValues))
    return std::unexpected(refuse(kBadRequest, "the body has too many values",
                                  "send fewer at once; no request takes so many"));
  json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  json::parser parser({}, options);
  boost::system::error_code error;
  const std::size_t read = parser.write_some(request.body, error);
  const std::string where = " at " + place_in(request.body, read);
  // What comes after the value, too, which write_some leaves.
  if (!error && request.body.find_first_not_of(" \t\r\n", read) != std::string::npos)
    return std::unexpected(
        refuse(kBadRequest, "the body is no JSON: something follows it" + where, kOneObject));
  if (error)
    return std::unexpected(
        refuse(kBadRequest, "the body is no JSON: " + error.message() + where, kOneObject));
  json::value value = parser.release();
  if (!value.is_object())
    return std::unexpected(refuse(kBadRequest, "the body must be a JSON object", kOneObject));
  return std::move(value.as_object());
}

Async<std::expected<json::object, Response>> json_body(const session::Beside& beside,
                                                       Request& request) {
  Request part;
  part.headers = request.headers;
  part.body = std::move(request.body);
  const std::size_t size = part.body.size();
  auto read = [part = std::move(part)] { return json_body(part); };
  co_return co_await beside.run(size, std::move(read));
}

Async<Response> answer_json(const session::Beside& beside, json::object object) {
  const std::size_t size = weight(object, session::Beside::kLittle);
  auto write = [value = json::value(std::move(object))] { return answer_json(value); };
  co_return co_await beside.run(size, std::move(write));
}

void Fields::complain(std::string_view name, std::string_view what, std::string hint) {
  if (!fault_.empty()) return;
  fault_ = printable(name) + ": " + std::string(what);
  hint_ = std::move(hint);
}

json::value* Fields::take(std::string_view name) {
  known_.emplace(name);
  json::value* value = object_.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<std::string> Fields::text(std::string_view name) {
  const json::value* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return std::string(value->as_string());
  complain(name, "must be a text");
  return std::nullopt;
}

std::string Fields::required_text(std::string_view name) {
  std::optional<std::string> value = text(name);
  if (!value) complain(name, "is missing");
  return value.value_or("");
}

bool Fields::flag(std::string_view name) {
  const json::value* value = take(name);
  if (value == nullptr) return false;
  if (value->is_bool()) return value->as_bool();
  complain(name, "must be true or false");
  return false;
}

std::optional<std::uint64_t> Fields::number(std::string_view name) {
  const json::value* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_int64() && value->as_int64() >= 0)
    return static_cast<std::uint64_t>(value->as_int64());
  if (value->is_uint64()) return value->as_uint64();
  // 3.0 is a whole number too; one that is too large for us is as good as the largest.
  if (value->is_double() && value->as_double() >= 0 && is_whole(value->as_double()))
    return static_cast<std::uint64_t>(std::min(std::round(value->as_double()), kLargestExact));
  complain(name, "must be a whole number, 0 or more");
  return std::nullopt;
}

std::optional<std::chrono::milliseconds> Fields::milliseconds(std::string_view name) {
  const std::optional<std::uint64_t> value = number(name);
  if (!value) return std::nullopt;
  if (*value == 0) complain(name, "must be more than 0");
  return std::chrono::milliseconds(std::min(*value, kMaxMilliseconds));
}

std::vector<std::string> Fields::texts(std::string_view name) {
  const json::value* value = take(name);
  std::vector<std::string> list;
  if (value == nullptr) return list;
  if (!value->is_array()) complain(name, "must be a list of texts");
  if (!value->is_array()) return list;
  for (const json::value& item : value->as_array()) {
    if (item.is_string()) list.emplace_back(item.as_string());
    if (!item.is_string()) complain(name, "must be a list of texts");
  }
  return list;
}

std::optional<json::object> Fields::object(std::string_view name) {
  json::value* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_object()) return std::move(value->as_object());
  complain(name, "must be an object");
  return std::nullopt;
}

std::optional<Response> Fields::refusal() {
  const std::vector<std::string_view> names(known_.begin(), known_.end());
  for (const auto& member : object_) {
    if (!fault_.empty()) break;  // the first is what is said
    if (known_.contains(member.key())) continue;
    const std::string_view near = nearest(member.key(), names);
    complain(member.key(), "there is no such field",
             near.empty() ? "there are " + with_commas(names)
                          : "did you mean " + std::string(near) + "?");
  }
  if (fault_.empty()) return std::nullopt;
  return refuse(kBadRequest, fault_, hint_);
}

}  // namespace belljar::server
