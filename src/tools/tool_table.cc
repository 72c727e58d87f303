#include "tools/tool_table.h"

namespace belljar::tools {
namespace {

namespace json = boost::json;

json::object schema(json::object properties, json::array required) {
  properties["session"] = {{"type", "string"}};
  json::object object{{"type", "object"}};
  object["properties"] = std::move(properties);
  if (!required.empty()) object["required"] = std::move(required);
  return object;
}

const json::object kText{{"type", "string"}};
const json::object kNumber{{"type", "integer"}, {"minimum", 1}};
const json::object kTexts{{"type", "array"}, {"items", {{"type", "string"}}}};

std::vector<Tool> make_tools() {
  return {
      {"python",
       "Run Python",
       false,
       true,
       schema({{"code", kText}, {"timeout_ms", kNumber}, {"outputs", kTexts}}, {"code"}),
       {}},
      {"shell",
       "Run shell commands",
       false,
       true,
       schema({{"commands", kTexts}, {"timeout_ms", kNumber}, {"outputs", kTexts}}, {"commands"}),
       {}},
      {"session_list", "List sessions", true, false, schema({}, {}), {}},
      {"session_close", "Close a session", false, true, schema({}, {}), {}},
      {"session_reset", "Reset Python", false, true, schema({}, {}), {}},
      {"process_start", "Start a process", false, true, schema({{"command", kText}}, {}), {}},
      {"process_poll",
       "Poll a process",
       true,
       false,
       schema({{"process", kText}}, {"process"}),
       {}},
      {"process_write",
       "Write to a process",
       false,
       true,
       schema({{"process", kText}, {"text", kText}}, {"process"}),
       {}},
      {"process_signal",
       "Signal a process",
       false,
       true,
       schema({{"process", kText}, {"signal", kText}}, {"process"}),
       {}},
  };
}

}  // namespace

const std::vector<Tool>& all_tools() {
  static const std::vector<Tool> kTools = make_tools();
  return kTools;
}

std::string describe(const Tool& tool, const Facts& facts) {
  return std::string(tool.title) + " in " + facts.workdir;
}

}  // namespace belljar::tools
