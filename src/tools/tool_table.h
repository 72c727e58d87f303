// The tool table: what an agent is offered, in one place for REST, MCP, dispatch and bindings.
//
// A description is read by a model, and is true of the session that it is given for: it names the
// places, the network and the limits that the plan enforces, as Facts.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::tools {

// A folder of instructions and programs that a session has.
struct SkillFact {
  std::string path;   // from the workdir
  std::string about;  // as its author describes it
  bool operator==(const SkillFact&) const = default;
};

// What the plan of a session enforces, in words.
struct Facts {
  std::vector<std::string> writable;  // places, as the guest sees them
  std::string network;                // "no network", "only these hosts: …"
  std::vector<std::string> limits;    // "2048 MB of memory", "60 s for a call"
  std::string workdir;                // as the guest sees it
  std::vector<SkillFact> skills;
  bool operator==(const Facts&) const = default;
};

struct Tool {
  std::string_view name;
  std::string_view title;  // for people
  std::string_view about;  // what is true of every session
  bool read_only = false;
  bool destructive = false;
  bool runs_code = false;                           // so the facts of the plan are told with it
  boost::json::object input_schema, output_schema;  // JSON Schema 2020-12
};

const std::vector<Tool>& all_tools();
const Tool* find_tool(std::string_view name);  // none if there is none of that name

std::string describe(const Tool& tool, const Facts& facts);
// All of them, as they are told to who will offer them to a model.
boost::json::array tools_as_json(const Facts& facts);

}  // namespace belljar::tools
