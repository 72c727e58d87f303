#include "tools/tool_schemas.h"

#include <boost/json.hpp>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <vector>

#include "tools/arguments.h"
#include "tools/glob.h"
#include "tools/grep.h"
#include "tools/needle.h"
#include "tools/read.h"
#include "tools/workspace.h"
#include "tools/write.h"

namespace belljar::tools::schemas {
namespace {

namespace json = boost::json;

enum class Need : std::uint8_t { required, optional };

struct Property {
  std::string_view name;
  Need need;
  json::object schema;
};

json::object typed(json::value type, std::string_view about) {
  json::object schema{{"type", std::move(type)}};
  if (!about.empty()) schema["description"] = about;
  return schema;
}
json::object text(std::string_view about) { return typed("string", about); }
json::object text(std::string_view about, std::size_t most) {
  json::object schema = text(about);
  schema["maxLength"] = most;
  return schema;
}
json::object flag(std::string_view about) { return typed("boolean", about); }
json::object number(std::string_view about, std::uint64_t least = 0) {
  json::object schema = typed("integer", about);
  schema["minimum"] = least;
  return schema;
}
json::object number(std::string_view about, std::uint64_t least, std::uint64_t most) {
  json::object schema = number(about, least);
  schema["maximum"] = most;
  return schema;
}
json::object list(json::object items, std::string_view about) {
  json::object schema = typed("array", about);
  schema["items"] = std::move(items);
  return schema;
}
json::object texts(std::string_view about) { return list(typed("string", ""), about); }
json::object few_texts(std::string_view about) {
  json::object schema = texts(about);
  schema["maxItems"] = kMaxCommands;
  return schema;
}
json::object or_null(json::object schema) {
  schema["type"] = json::array{schema["type"], "null"};
  return schema;
}

json::object object(std::vector<Property> properties) {
  json::object known;
  json::array required;
  for (Property& property : properties) {
    if (property.need == Need::required) required.push_back(json::string(property.name));
    known[property.name] = std::move(property.schema);
  }
  json::object schema{{"type", "object"}, {"properties", std::move(known)}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

constexpr auto kRequired = Need::required;
constexpr auto kOptional = Need::optional;

Property session() {
  return {"session", kOptional,
          text("Which session. Leave it out for your own, or pass on the one that an answer named; "
               "a name that is new makes a new one.")};
}
Property path(std::string_view about, Need need = kRequired) {
  return {"path", need, text(about, kMaxPath)};
}

// What may be given: nothing else, so that a misspelt name is an error and not ignored.
json::object input(std::vector<Property> properties) {
  json::object schema = object(std::move(properties));
  schema["additionalProperties"] = false;
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  return schema;
}
json::object input_with_session(std::vector<Property> properties) {
  properties.push_back(session());
  return input(std::move(properties));
}
json::object output(std::vector<Property> properties) {
  json::object schema = object(std::move(properties));
  schema["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  return schema;
}

json::object file() {
  return object({{"name", kRequired, text("Relative to the working folder.")},
                 {"size", kRequired, number("Bytes.")},
                 {"mime", kRequired, text("")},
                 {"text", kOptional, text("The content, if it is text and not large.")},
                 {"base64", kOptional, text("The content, if it is not text and not large.")}});
}

// What calls of python and shell have in common.
std::vector<Property> report() {
  json::object status = text("How it ended.");
  status["enum"] = json::array{"success", "error", "timeout", "denied"};
  return {
      {"status", kRequired, std::move(status)},
      {"stdout", kRequired, text("Head and tail, where it was too much.")},
      {"stderr", kRequired, text("")},
      {"stdout_cut_bytes", kOptional, number("Left out of stdout.")},
      {"stderr_cut_bytes", kOptional, number("Left out of stderr.")},
      {"files", kOptional, list(file(), "Files that are new or have changed.")},
      {"more_files", kOptional, flag("There are more than are listed.")},
      {"working_directory", kOptional, text("")},
      {"execution_time_ms", kOptional, typed("number", "")},
      {"interrupted", kOptional, flag("It was asked to stop.")},
      {"killed", kOptional, flag("It did not, and was made to.")},
      {"state_lost", kOptional, flag("The next call finds a fresh interpreter or shell.")},
      {"limits_hit", kOptional, texts("")},
      {"notes", kOptional, texts("What else one should know.")},
      {"session", kOptional, text("Where it ran; name it to go on there.")},
  };
}

std::vector<Property> with(std::vector<Property> some, std::vector<Property> more) {
  for (Property& property : more) some.push_back(std::move(property));
  return some;
}

constexpr std::string_view kOutputs = "Files to return even if they have not changed.";
constexpr std::string_view kOutputFile =
    "Name of a new file in the working folder, to which all output goes as well.";

Schemas python() {
  return {
      input_with_session({
          {"code", kRequired, text("Python source. The value of a last expression is returned.")},
          {"timeout_ms", kOptional, number("Milliseconds, up to the operator's ceiling.", 1)},
          {"outputs", kOptional, few_texts(kOutputs)},
          {"output_file", kOptional, text(kOutputFile)},
      }),
      output(with(report(), {{"exception", kOptional,
                              or_null(object({{"type", kRequired, text("")},
                                              {"message", kRequired, text("")},
                                              {"traceback", kRequired, text("")}}))},
                             {"result", kOptional, or_null(text("repr() of the last expression."))},
                             {"result_type", kOptional, text("")}}))};
}

Schemas shell() {
  json::object commands = few_texts("One after another, in the same shell.");
  commands["minItems"] = 1;
  return {input_with_session({
              {"commands", kRequired, std::move(commands)},
              {"timeout_ms", kOptional,
               number("Milliseconds for all of them, up to the operator's ceiling.", 1)},
              {"max_output_length", kOptional, number("Bytes of each stream to return.", 1)},
              {"one_shot", kOptional, flag("In a shell of its own, of which nothing stays.")},
              {"outputs", kOptional, few_texts(kOutputs)},
              {"output_file", kOptional, text(kOutputFile)},
          }),
          output(with(report(),
                      {{"commands", kOptional,
                        list(object({{"command", kRequired, text("")},
                                     {"exit_code", kRequired, or_null(typed("integer", ""))}}),
                             "How each ended; null: it was not run to its end.")},
                       {"exit_code", kRequired, typed("integer", "Of the last that ran.")},
                       {"timed_out", kOptional, flag("")}}))};
}

Schemas read() {
  return {input_with_session({
              path("The file."),
              {"offset", kOptional, number("The first line to show; lines count from 1.", 1)},
              {"limit", kOptional, number("How many lines.", 1, kMaxReadLines)},
          }),
          output({{"path", kRequired, text("Where it is, symbolic links followed.")},
                  {"text", kRequired, text("Lines as `12: what stands there`.")},
                  {"lines", kRequired, number("How many are shown.")},
                  {"total_lines", kOptional, number("Of the whole file.")},
                  {"truncated", kRequired, flag("There is more, or a line was cut.")},
                  {"image_mime", kOptional, text("It is an image of this type.")}})};
}

Schemas write() {
  json::object content = text("All of the file.", kMaxWriteBytes);
  return {input_with_session({path("The file; folders on the way are made."),
                              {"content", kRequired, std::move(content)}}),
          output({{"path", kRequired, text("Where it is, symbolic links followed.")},
                  {"bytes", kRequired, number("")},
                  {"created", kRequired, flag("False: another was replaced.")}})};
}

Schemas edit() {
  json::object before = text("Exactly as it stands in the file, without line numbers.");
  before["minLength"] = 1;
  return {input_with_session({
              path("The file."),
              {"old_string", kRequired, std::move(before)},
              {"new_string", kRequired, text("What shall stand there.")},
              {"replace_all", kOptional, flag("Every place; otherwise there must be just one.")},
          }),
          output({{"path", kRequired, text("Where it is, symbolic links followed.")},
                  {"replacements", kRequired, number("", 1)},
                  {"line", kRequired, number("Of the first.", 1)}})};
}

Schemas glob() {
  json::object pattern = text("As `src/**/*.{cc,h}`; `*.cc` means this folder only.", kMaxPath);
  pattern["minLength"] = 1;
  json::object paths = texts("The newest first.");
  paths["maxItems"] = kMaxGlobbed;
  return {input_with_session({
              {"pattern", kRequired, std::move(pattern)},
              path("The folder to look in; else the working folder.", kOptional),
          }),
          output({{"paths", kRequired, std::move(paths)},
                  {"total", kRequired, number("How many were found.")},
                  {"truncated", kRequired, flag("There are more, or not all was looked at.")}})};
}

Schemas grep() {
  json::object pattern = text("A regular expression (RE2), matched within lines.", kMaxExpression);
  pattern["minLength"] = 1;
  json::object matches = list(object({{"path", kRequired, text("")},
                                      {"line", kRequired, number("", 1)},
                                      {"text", kRequired, text("")},
                                      {"before", kRequired, texts("")},
                                      {"after", kRequired, texts("")}}),
                              "By path and line.");
  matches["maxItems"] = kMaxMatches;
  return {input_with_session({
              {"pattern", kRequired, std::move(pattern)},
              path("A folder or one file; else the working folder.", kOptional),
              {"include", kOptional,
               text("Only these files: `*.cc` anywhere, `src/**/*.cc`.", kMaxPath)},
              {"context", kOptional, number("Lines before and after.", 0, kMaxContext)},
              {"ignore_case", kOptional, flag("Upper and lower case are the same.")},
          }),
          output({{"matches", kRequired, std::move(matches)},
                  {"files", kRequired, number("That were searched.")},
                  {"truncated", kRequired, flag("There may be more.")}})};
}

Schemas session_list() {
  return {input({}), output({{"sessions", kRequired,
                              list(object({{"session", kRequired, text("")},
                                           {"busy", kRequired, flag("")},
                                           {"idle_ms", kRequired, number("")},
                                           {"memory_kb", kRequired, number("")}}),
                                   "")}})};
}

Schemas of_session(std::string_view done) {
  return {input_with_session({}),
          output({{"session", kRequired, text("")}, {"status", kRequired, text(done)}})};
}

// How a process is.
json::object process_state() {
  return output(
      {{"process", kRequired, text("Name it to process_poll, _write and _signal.")},
       {"running", kRequired, flag("")},
       {"exit_code", kRequired, or_null(typed("integer", "128 + signal, if one ended it."))},
       {"stdout", kRequired, text("Since the last answer about it.")},
       {"stderr", kRequired, text("Since the last answer about it.")},
       {"stdout_cut_bytes", kOptional, number("")},
       {"stderr_cut_bytes", kOptional, number("")}});
}
Property process() { return {"process", kRequired, text("As process_start returned it.")}; }

Schemas process_start() {
  json::object arguments = texts("The program and its arguments; no shell reads them.");
  arguments["minItems"] = 1;
  json::object environment = typed("object", "Variables besides the session's own.");
  environment["additionalProperties"] = typed("string", "");
  environment["maxProperties"] = kMaxVariables;
  return {
      input_with_session({
          {"arguments", kRequired, std::move(arguments)},
          {"folder", kOptional, text("Where it starts; else the working folder.", kMaxPath)},
          {"environment", kOptional, std::move(environment)},
          {"terminal", kOptional, flag("It gets a terminal of its own, for what asks for one.")},
      }),
      process_state()};
}

Schemas process_poll() {
  return {
      input_with_session({process(),
                          {"wait_ms", kOptional,
                           number("Where it has written nothing yet, wait so long until it does "
                                  "or ends.",
                                  0, 20'000)}}),
      process_state()};
}

Schemas process_write() {
  return {input_with_session({process(),
                              {"text", kRequired, text("For its standard input.")},
                              {"end", kOptional, flag("No more will come: it sees the end.")}}),
          process_state()};
}

Schemas process_signal() {
  json::object signal = text("");
  signal["enum"] =
      json::array{"INT", "TERM", "KILL", "HUP", "QUIT", "USR1", "USR2", "STOP", "CONT"};
  return {input_with_session({process(), {"signal", kRequired, std::move(signal)}}),
          process_state()};
}

}  // namespace

Schemas of(std::string_view tool) {
  if (tool == "python") return python();
  if (tool == "shell") return shell();
  if (tool == "read") return read();
  if (tool == "write") return write();
  if (tool == "edit") return edit();
  if (tool == "glob") return glob();
  if (tool == "grep") return grep();
  if (tool == "session_list") return session_list();
  if (tool == "session_close") return of_session("closed");
  if (tool == "session_reset") return of_session("reset");
  if (tool == "process_start") return process_start();
  if (tool == "process_poll") return process_poll();
  if (tool == "process_write") return process_write();
  if (tool == "process_signal") return process_signal();
  std::abort();
}

}  // namespace belljar::tools::schemas
