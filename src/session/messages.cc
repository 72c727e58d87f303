#include "session/messages.h"

#include <boost/json.hpp>

namespace belljar::session {
namespace {

namespace json = boost::json;

// Of images and of frames, in one call.
constexpr int kMaxImages = 32;
constexpr int kMaxVideoFrames = 64;
constexpr int kMaxRepr = 1 << 16;
constexpr int kDpi = 150;
// An honest message has some dozens. As many keys can be chosen to fall into one bucket of the
// parser's table, whose time then grows with their square.
constexpr std::size_t kMaxParts = 2'000;
constexpr std::string_view kPng = "image/png";
constexpr std::string_view kVideoFrames = "video_frames";  // no MIME type: a list of images

const json::value* find(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string text(const json::object& object, std::string_view name) {
  const json::value* value = find(object, name);
  const json::string* string = value != nullptr ? value->if_string() : nullptr;
  return string != nullptr ? std::string(*string) : std::string();
}

std::uint64_t number(const json::object& object, std::string_view name) {
  const json::value* value = find(object, name);
  if (value == nullptr) return 0;
  if (const std::int64_t* n = value->if_int64(); n != nullptr && *n > 0)
    return static_cast<std::uint64_t>(*n);
  return 0;
}

const json::object* part(const json::object& object, std::string_view name) {
  const json::value* value = find(object, name);
  return value != nullptr ? value->if_object() : nullptr;
}

// As JSON writes it: a control character takes six bytes.
std::size_t size_of(std::string_view text) {
  std::size_t size = 2 * sizeof(std::string);  // many empty ones are no small thing either
  for (const char c : text)
    size += static_cast<unsigned char>(c) < ' ' ? 6U : c == '"' || c == '\\' ? 2U : 1U;
  return size;
}

std::size_t size_of(const Representations& all) {
  std::size_t size = 0;
  // An image is in the answer twice: as a display, and among the images.
  for (const auto& [mime, value] : all)
    size += size_of(mime) + size_of(value) * (mime == kPng ? 2 : 1);
  return size;
}

Representations representations(const json::object& object) {
  Representations result;
  const json::object* data = part(object, "data");
  if (data == nullptr) return result;
  for (const auto& [mime, value] : *data) {
    if (mime == kVideoFrames) continue;
    const json::string* string = value.if_string();
    result.emplace_back(mime, string != nullptr ? std::string(*string) : json::serialize(value));
  }
  return result;
}

Display parse_display(const json::object& object) {
  Display display{.id = number(object, "id"), .data = representations(object), .video_frames = {}};
  display.size = size_of(display.data);
  const json::object* data = part(object, "data");
  const json::value* frames = data != nullptr ? find(*data, kVideoFrames) : nullptr;
  if (frames == nullptr || !frames->is_array()) return display;
  for (const json::value& frame : frames->get_array())
    if (const json::string* string = frame.if_string()) display.video_frames.emplace_back(*string);
  for (const std::string& frame : display.video_frames) display.size += size_of(frame);
  return display;
}

Done parse_done(const json::object& object) {
  Done done{.id = number(object, "id"),
            .success = text(object, "status") == "success",
            .exception = {},
            .result = {},
            .result_type = {},
            .result_data = {},
            .exit_code = {}};
  if (const json::object* exception = part(object, "exception"))
    done.exception = Exception{.type = text(*exception, "type"),
                               .message = text(*exception, "message"),
                               .traceback = text(*exception, "traceback")};
  if (const json::object* result = part(object, "result")) {
    done.result = text(*result, "repr");
    done.result_type = text(*result, "type");
    done.result_data = representations(*result);
  }
  const json::value* exit_code = find(object, "exit_code");
  if (exit_code != nullptr && exit_code->is_int64())
    done.exit_code = static_cast<int>(exit_code->get_int64() & 0xff);
  if (done.exception)
    done.size += size_of(done.exception->type) + size_of(done.exception->message) +
                 size_of(done.exception->traceback);
  done.size += size_of(done.result.value_or("")) + size_of(done.result_type);
  done.size += size_of(done.result_data);
  return done;
}

}  // namespace

bool has_too_many_parts(std::string_view json) {
  std::size_t parts = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text && c == '\\')
      ++i;
    else if (c == '"')
      in_text = !in_text;
    else if (!in_text && (c == ',' || c == ':' || c == '[' || c == '{') && ++parts > kMaxParts)
      return true;
  }
  return false;
}

std::optional<Message> parse_message(std::string_view payload) {
  boost::system::error_code error;
  const json::value value = json::parse(payload, error);
  const json::object* object = error ? nullptr : value.if_object();
  if (object == nullptr) return std::nullopt;
  const std::string op = text(*object, "op");
  if (op == "ready") return Ready{.python = text(*object, "python")};
  if (op == "display") return parse_display(*object);
  if (op == "done") return parse_done(*object);
  return std::nullopt;
}

std::string setup_request(std::size_t max_frame, std::string_view display) {
  json::value text_of_display = nullptr;
  if (!display.empty()) text_of_display = display;
  return json::serialize(json::object{{"op", "setup"},
                                      {"display", text_of_display},
                                      {"dpi", kDpi},
                                      {"max_repr", kMaxRepr},
                                      {"max_frame", max_frame},
                                      {"max_images", kMaxImages},
                                      {"max_video_frames", kMaxVideoFrames}});
}

std::string execute_request(std::uint64_t id, const PythonCall& call) {
  json::object request{{"op", "execute"}, {"id", id}, {"code", call.code}};
  if (!call.file.empty()) {
    request["file"] = call.file;
    request["arguments"] = json::value_from(call.arguments);
  }
  return json::serialize(request);
}

}  // namespace belljar::session
