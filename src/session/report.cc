#include "session/report.h"

#include <boost/json.hpp>

#include "base/base64.h"

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
    if (file.has_content && !file.is_text) object["base64"] = to_base64(file.content);
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
