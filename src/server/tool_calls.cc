#include "server/tool_calls.h"

namespace belljar::server {

namespace json = boost::json;

ToolCall tool_call(const SessionEntry& entry, const Principal& caller, std::string tool,
                   json::object arguments) {
  arguments.erase("session");
  ToolCall call;
  // No tool has an argument of that name: it says whose permissions count too.
  if (const json::value* agent = arguments.if_contains("agent"); agent != nullptr) {
    call.agent = agent->is_string() ? std::string(agent->get_string()) : json::serialize(*agent);
    arguments.erase("agent");
  }
  call.session = entry.id();
  call.tool = std::move(tool);
  call.arguments = std::move(arguments);
  call.principal = entry.owner;
  call.by = caller.name;
  call.may_open = false;
  return call;
}

Async<ToolAnswer> call_tool(App& app, ToolCall call) {
  const std::string session = call.session;
  const std::string tool = call.tool;
  json::object started;
  started["tool"] = tool;
  app.tell("call_started", session, started);
  const Clock::time_point began = Clock::now();
  ToolAnswer answer = co_await app.dispatcher().call(std::move(call));
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began);
  // The names of tools that there are not are the client's own, and no labels.
  const bool is_tool = answer.error_type != "unknown_tool";
  const std::string status = answer.is_error ? answer.error_type : "success";
  app.metrics().count_call(is_tool ? tool : "unknown", status, time);
  json::object finished = started;
  finished["status"] = status;
  app.tell("call_finished", session, finished);
  co_return answer;
}

std::optional<Fault> fault_of(const ToolAnswer& answer) {
  if (!answer.is_error) return std::nullopt;
  const std::string& type = answer.error_type;
  if (type == "invalid_arguments") return kBadRequest;
  if (type == "unknown_tool" || type == "not_found") return kNotFound;
  if (type == "denied") return kDenied;
  if (type == "not_approved") return kNotApproved;
  if (type == "cancelled") return kCancelled;
  if (type == "output_file") return kConflict;
  if (type == "failed") return kSessionFailed;
  if (type == "host_failed") return kHostFailed;
  return std::nullopt;
}

json::object to_json(const ToolAnswer& answer, std::string_view viewer) {
  json::array images;
  for (const Image& image : answer.images)
    images.push_back({{"mime", image.mime}, {"base64", image.base64}});
  json::array files;
  for (const FileLink& file : answer.files)
    files.push_back({{"name", file.name}, {"mime", file.mime}, {"size", file.size}});
  json::object object;
  object["is_error"] = answer.is_error;
  object["error_type"] = answer.error_type;
  object["text"] = answer.text;
  object["structured"] = answer.structured;
  object["images"] = std::move(images);
  object["files"] = std::move(files);
  object["session_id"] = called_by(viewer, answer.session);
  return object;
}

}  // namespace belljar::server
