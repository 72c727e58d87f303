// The JSON schemas of requests and answers, as the OpenAPI document shows them.
#include <algorithm>
#include <boost/json.hpp>
#include <string_view>

#include "server/openapi.h"

namespace belljar::server {
namespace {

namespace json = boost::json;

constexpr std::string_view kSchemas = R"json({
"Error": {"type": "object", "required": ["error"], "properties": {"error": {
  "type": "object", "required": ["type", "message", "hint"], "properties": {
    "type": {"type": "string"}, "message": {"type": "string"}, "hint": {"type": "string"}}}}},
"Status": {"type": "object", "required": ["status"], "properties": {
  "status": {"type": "string"}}},
"Event": {"type": "object", "description": "one of a stream of server-sent events",
  "required": ["data"], "properties": {
    "event": {"type": "string"}, "id": {"type": "string"},
    "data": {"type": "string", "contentMediaType": "application/json"}}},
"Description": {"type": "object", "required": ["openapi", "info", "paths", "components"]},
"Capabilities": {"type": "object", "description": "what is enforced here: a plan as data"},
"SessionRequest": {"type": "object", "additionalProperties": false, "properties": {
  "id": {"type": "string", "description": "its name among yours; without one it is made up",
         "pattern": "^[A-Za-z0-9_:-][A-Za-z0-9_.:-]{0,127}$"},
  "profile": {"type": "string", "enum": ["open", "developer", "restricted", "public-bot",
              "trusted-maintenance"], "description": "one that allows no more than the server's"},
  "policy": {"type": "object", "description": "keys of [sandbox] that narrow the policy"},
  "shared": {"type": "boolean", "description": "every token may use it, as NAME@TOKEN"},
  "skills": {"type": "array", "items": {"type": "string"},
             "description": "skills to show at skills/NAME, by id or name; another token's as NAME@TOKEN"}}},
"Session": {"type": "object",
  "required": ["id", "owner", "shared", "profile", "skills", "created_at", "busy", "idle_ms",
               "memory_kb"],
  "properties": {
    "id": {"type": "string"}, "owner": {"type": "string"}, "shared": {"type": "boolean"},
    "profile": {"type": "string"}, "skills": {"type": "array", "items": {"type": "string"}},
    "created_at": {"type": "string"}, "busy": {"type": "boolean"},
    "idle_ms": {"type": "integer"}, "memory_kb": {"type": "integer"},
    "plan": {"type": ["object", "null"]}}},
"Sessions": {"type": "object", "required": ["sessions"], "properties": {
  "sessions": {"type": "array", "items": {"$ref": "#/components/schemas/Session"}}}},
"SessionId": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}},
"InterruptRequest": {"type": "object", "additionalProperties": false, "properties": {
  "call": {"type": "string", "description": "only this one, as Belljar-Call of its stream names it"}}},
"DispatchAddress": {"type": "object", "required": ["path"], "properties": {
  "path": {"type": "string", "description": "with its token; a new one ends the last"}}},
"PythonRequest": {"type": "object", "additionalProperties": false, "required": ["code"],
  "properties": {
    "code": {"type": "string"}, "timeout_ms": {"type": "integer", "minimum": 1},
    "outputs": {"type": "array", "maxItems": 100, "items": {"type": "string"},
                "description": "files to return even if they have not changed"},
    "output_file": {"type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}$",
                    "description": "a new file that gets all output"},
    "agent": {"type": "string", "description": "whose permissions count too"},
    "stream": {"type": "boolean", "description": "answer with server-sent events"}}},
"ShellRequest": {"type": "object", "additionalProperties": false, "required": ["commands"],
  "properties": {
    "commands": {"type": "array", "minItems": 1, "maxItems": 100,
                 "items": {"type": "string", "pattern": "^[^\\u0000]*$"}},
    "timeout_ms": {"type": "integer", "minimum": 1},
    "max_output_length": {"type": "integer", "minimum": 1},
    "one_shot": {"type": "boolean", "description": "in a shell of its own"},
    "outputs": {"type": "array", "maxItems": 100, "items": {"type": "string"}},
    "output_file": {"type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}$"},
    "agent": {"type": "string"},
    "stream": {"type": "boolean"}}},
"SpawnRequest": {"type": "object", "additionalProperties": false, "required": ["arguments"],
  "properties": {
    "arguments": {"type": "array", "minItems": 1, "maxItems": 1000,
                  "prefixItems": [{"type": "string", "pattern": "^[^\\u0000]+$"}],
                  "items": {"type": "string", "pattern": "^[^\\u0000]*$"},
                  "description": "the program and its arguments; no shell reads them"},
    "folder": {"type": "string", "pattern": "^[^\\u0000]*$", "description": "where it starts; else the workdir"},
    "environment": {"type": "object", "propertyNames": {"pattern": "^[^=\\u0000]+$"},
                    "additionalProperties": {"type": "string", "pattern": "^[^\\u0000]*$"},
                    "description": "variables besides the session's own"},
    "timeout_ms": {"type": "integer", "minimum": 1}, "agent": {"type": "string"},
    "stream": {"type": "boolean"}}},
"SpawnResult": {"type": "object",
  "required": ["status", "exit_code", "timed_out", "interrupted", "stdout", "stderr",
               "stdout_cut_bytes", "stderr_cut_bytes", "execution_time_ms", "notes", "session_id"],
  "properties": {
    "status": {"enum": ["success", "error", "timeout"]}, "exit_code": {"type": ["integer", "null"]},
    "timed_out": {"type": "boolean"}, "interrupted": {"type": "boolean"},
    "stdout": {"type": "string"}, "stderr": {"type": "string"},
    "stdout_cut_bytes": {"type": "integer"}, "stderr_cut_bytes": {"type": "integer"},
    "execution_time_ms": {"type": "integer"}, "session_id": {"type": "string"},
    "notes": {"type": "array", "items": {"type": "string"}}}},
"FileOfCall": {"type": "object", "required": ["name", "size", "mime"], "properties": {
  "name": {"type": "string"}, "size": {"type": "integer"}, "mime": {"type": "string"},
  "text": {"type": "string"}, "base64": {"type": "string"}}},
"Report": {"type": "object",
  "required": ["status", "stdout", "stderr", "files", "working_directory", "execution_time_ms",
               "session_id"],
  "properties": {
    "schema_version": {"type": "integer"}, "session_id": {"type": "string"},
    "status": {"enum": ["success", "error", "timeout"]},
    "stdout": {"type": "string"}, "stderr": {"type": "string"},
    "stdout_cut_bytes": {"type": "integer"}, "stderr_cut_bytes": {"type": "integer"},
    "files": {"type": "array", "items": {"$ref": "#/components/schemas/FileOfCall"}},
    "more_files": {"type": "boolean"}, "working_directory": {"type": "string"},
    "execution_time_ms": {"type": "number"}, "interrupted": {"type": "boolean"},
    "killed": {"type": "boolean"}, "state_lost": {"type": "boolean"},
    "limits_hit": {"type": "array", "items": {"type": "string"}},
    "notes": {"type": "array", "items": {"type": "string"}}}},
"PythonResult": {"allOf": [{"$ref": "#/components/schemas/Report"}, {"type": "object",
  "properties": {
    "started": {"type": ["string", "null"]}, "result": {"type": ["string", "null"]},
    "result_type": {"type": "string"}, "result_data": {"type": "object"},
    "exception": {"type": ["object", "null"]}, "displays": {"type": "array"},
    "images": {"type": "array", "items": {"type": "string"}},
    "video_frames": {"type": "array", "items": {"type": "string"}}}}]},
"ShellResult": {"allOf": [{"$ref": "#/components/schemas/Report"}, {"type": "object",
  "properties": {
    "exit_code": {"type": "integer"}, "timed_out": {"type": "boolean"},
    "commands": {"type": "array", "items": {"type": "object"}}}}]}
)json"  // a literal has its limits
                                      R"json(,
"Tools": {"type": "object", "required": ["tools"], "properties": {"tools": {
  "type": "array", "items": {"type": "object",
    "required": ["name", "description", "input_schema"], "properties": {
      "name": {"type": "string"}, "title": {"type": "string"}, "description": {"type": "string"},
      "read_only": {"type": "boolean"}, "destructive": {"type": "boolean"},
      "input_schema": {"type": "object"}, "output_schema": {"type": "object"}}}}}},
"ToolArguments": {"type": "object", "description": "as the tool's input_schema says"},
"ToolAnswer": {"type": "object", "required": ["is_error", "error_type", "text", "session_id"],
  "properties": {
    "is_error": {"type": "boolean"}, "error_type": {"type": "string"},
    "text": {"type": "string"}, "structured": {"type": "object"}, "images": {"type": "array"},
    "files": {"type": "array"}, "session_id": {"type": "string"}}},
"DispatchRequest": {"type": "object", "required": ["name"], "properties": {
  "name": {"type": "string"}, "arguments": {"type": ["object", "string"]}}},
"DispatchAnswer": {"type": "object", "required": ["content"], "properties": {
  "content": {"type": "string"}}},
"Approval": {"type": "object", "required": ["approval_id", "session_id", "round", "tool",
  "arguments"], "properties": {
    "approval_id": {"type": "string"}, "session_id": {"type": "string"},
    "round": {"type": "integer"}, "arguments": {"type": "object"},
    "asked_by": {"type": "string", "description": "the name of the token, where there is one"},
    "agent": {"type": "string", "description": "whose permissions count too"},
    "tool": {"type": "object",
      "properties": {"source": {"type": "string"}, "kind": {"type": "string"},
                     "label": {"type": "string"}}}}},
"Approvals": {"type": "object", "required": ["approvals"], "properties": {
  "approvals": {"type": "array", "items": {"$ref": "#/components/schemas/Approval"}}}},
"DecisionRequest": {"type": "object", "additionalProperties": false, "required": ["decision"],
  "properties": {
    "decision": {"enum": ["approve", "deny"]},
    "remember_for_session": {"type": "boolean", "description": "the same as the scope tool"},
    "scope": {"enum": ["once", "tool", "pattern", "same"]}, "pattern": {"type": "string"},
    "message": {"type": "string", "description": "for the model"}}},
"Decided": {"type": "object", "required": ["approval_id", "decision"], "properties": {
  "approval_id": {"type": "string"}, "decision": {"type": "string"}}},
"Files": {"type": "object", "required": ["path", "files", "more"], "properties": {
  "path": {"type": "string"}, "more": {"type": "boolean"}, "files": {"type": "array",
    "items": {"type": "object", "properties": {
      "name": {"type": "string"}, "kind": {"enum": ["file", "folder", "link", "other"]},
      "size": {"type": "integer"}, "modified_ms": {"type": "integer"}}}}}},
"Uploaded": {"type": "object", "required": ["path", "bytes", "created"], "properties": {
  "path": {"type": "string"}, "bytes": {"type": "integer"}, "created": {"type": "boolean"}}},
"Skill": {"type": "object", "required": ["id", "object", "created_at", "name", "description",
  "owner", "latest_version"], "properties": {
    "id": {"type": "string"}, "object": {"const": "skill"}, "created_at": {"type": "integer"},
    "name": {"type": "string"}, "description": {"type": "string"}, "owner": {"type": "string"},
    "latest_version": {"type": "string"}}},
"Skills": {"type": "object", "required": ["object", "data"], "properties": {
  "object": {"const": "list"},
  "data": {"type": "array", "items": {"$ref": "#/components/schemas/Skill"}}}},
"SkillVersion": {"type": "object", "required": ["object", "skill_id", "version"], "properties": {
  "object": {"const": "skill.version"}, "skill_id": {"type": "string"},
  "version": {"type": "string"}}},
"SkillVersions": {"type": "object", "required": ["object", "data"], "properties": {
  "object": {"const": "list"},
  "data": {"type": "array", "items": {"$ref": "#/components/schemas/SkillVersion"}}}},
"SkillForm": {"type": "object",
  "description": "one zip, or loose files with their paths as file names",
  "properties": {
    "files": {"type": "array", "items": {"type": "string", "format": "binary"}},
    "files[]": {"type": "array", "items": {"type": "string", "format": "binary"}},
    "file": {"type": "string", "format": "binary"}}},
"McpMessage": {"description": "as the protocol has it"}
})json";

// An optional field of a request that is null is as one that is not there.
void allow_nulls(json::object& schema) {
  const json::value* listed = schema.if_contains("required");
  const json::array required = listed != nullptr ? listed->as_array() : json::array();
  for (auto& [name, value] : schema.at("properties").as_object()) {
    if (std::ranges::find(required, json::value(name)) != required.end()) continue;
    json::object& property = value.as_object();
    if (json::value* choices = property.if_contains("enum")) choices->as_array().push_back(nullptr);
    if (const json::value* type = property.if_contains("type"))
      property["type"] = json::array{*type, "null"};
  }
}

}  // namespace

json::object schemas() {
  json::object all = json::parse(kSchemas).as_object();
  for (auto& [name, schema] : all)
    if (schema.as_object().contains("additionalProperties")) allow_nulls(schema.as_object());
  return all;
}

}  // namespace belljar::server
