#include "session/report.h"

#include <boost/json.hpp>

namespace belljar::session {
namespace {

namespace json = boost::json;

json::array strings(const std::vector<std::string>& list) {
  return json::array(list.begin(), list.end());
}

json::object representations(const Representations& list) {
  json::object object;
  for (const auto& [mime, value] : list) object[mime] = value;
  return object;
}

json::array files(const std::vector<SessionFile>& list) {
  json::array array;
  for (const SessionFile& file : list) {
    json::object object{{"name", file.name}, {"size", file.size}, {"mime", file.mime}};
    if (file.has_content && file.is_text) object["text"] = file.content;
    if (file.has_content && !file.is_text) object["base64"] = base64(file.content);
    array.push_back(std::move(object));
  }
  return array;
}

void add_report(json::object& object, const CallReport& report) {
  object["status"] = name(report.status);
  object["stdout"] = report.out;
  object["stderr"] = report.err;
  object["stdout_cut_bytes"] = report.out_cut;
  object["stderr_cut_bytes"] = report.err_cut;
  object["files"] = files(report.files);
  object["more_files"] = report.more_files;
  object["working_directory"] = report.working_directory;
  object["execution_time_ms"] = static_cast<double>(report.time.count()) / 1000;
  object["interrupted"] = report.interrupted;
  object["killed"] = report.killed;
  object["state_lost"] = report.state_lost;
  object["limits_hit"] = strings(report.limits_hit);
  object["notes"] = strings(report.notes);
}

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  auto at = [&](std::size_t i) -> unsigned {
    return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0;
  };
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const unsigned group = at(i) << 16 | at(i + 1) << 8 | at(i + 2);
    for (unsigned shift : {18U, 12U, 6U, 0U}) text.push_back(kDigits[group >> shift & 0x3f]);
  }
  const std::size_t padding = (3 - bytes.size() % 3) % 3;
  return text.replace(text.size() - padding, padding, padding, '=');
}

std::optional<std::string> from_base64(std::string_view text) {
  auto digit = [](char c) {
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
  };
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  unsigned group = 0;
  int bits = 0;
  for (char c : text) {
    if (digit(c) < 0) return std::nullopt;
    group = group << 6 | static_cast<unsigned>(digit(c));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<char>(group >> bits & 0xff));
  }
  return bytes;
}

json::object to_json(const PythonResult& result) {
  json::object object{{"schema_version", 1}};
  add_report(object, result);
  object["started"] = nullptr;
  if (!result.started.empty()) object["started"] = result.started;
  object["exception"] = nullptr;
  if (const auto& exception = result.exception)
    object["exception"] = {{"type", exception->type},
                           {"message", exception->message},
                           {"traceback", exception->traceback}};
  object["result"] = nullptr;
  if (result.result) object["result"] = *result.result;
  object["result_type"] = result.result_type;
  object["result_data"] = representations(result.result_data);
  json::array displays;
  for (const Representations& display : result.displays)
    displays.push_back(representations(display));
  object["displays"] = std::move(displays);
  object["images"] = strings(result.images);
  object["video_frames"] = strings(result.video_frames);
  object["exit_code"] = nullptr;
  if (result.exit_code) object["exit_code"] = *result.exit_code;
  return object;
}

json::object to_json(const ShellResult& result) {
  json::object object{{"schema_version", 1}};
  add_report(object, result);
  json::array commands;
  for (const RunCommand& command : result.commands) {
    json::value code = nullptr;
    if (command.exit_code) code = *command.exit_code;
    commands.push_back({{"command", command.command}, {"exit_code", code}});
  }
  object["commands"] = std::move(commands);
  object["exit_code"] = result.exit_code;
  object["timed_out"] = result.status == CallStatus::timeout;
  return object;
}

}  // namespace belljar::session
