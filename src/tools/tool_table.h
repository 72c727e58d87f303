// The tools: their names, what they take and give, and what a model is told of them.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace belljar::tools {

// What the plan of a session enforces, in words.
struct Facts {
  std::vector<std::string> writable;
  std::string network;
  std::vector<std::string> limits;
  std::string workdir;
};

struct Tool {
  std::string_view name;
  std::string_view title;
  bool read_only = false;
  bool destructive = false;
  boost::json::object input_schema, output_schema;
};

const std::vector<Tool>& all_tools();
std::string describe(const Tool& tool, const Facts& facts);

}  // namespace belljar::tools
