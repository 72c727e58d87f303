// The file tools as the table has them: arguments in JSON, an answer for a model and for a program.
//
// They work on files for as long as that takes, on the thread that calls.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "tools/workspace.h"

namespace belljar::tools {

struct FileAnswer {
  std::string text;                // for a model, UTF-8
  boost::json::object structured;  // by the tool's output schema
  std::optional<std::string> image_mime, image_base64;
};

// read, write, edit, glob or grep.
bool is_file_tool(std::string_view name);

// Checks the arguments as well.
Result<FileAnswer> call_file_tool(const Workspace& workspace, std::string_view tool,
                                  const boost::json::object& arguments, std::stop_token stop = {});

}  // namespace belljar::tools
