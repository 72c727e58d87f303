// Arguments: what a model sent, held against a tool's schema. Only the keywords that the table
// uses are known.
#pragma once

#include <boost/json/fwd.hpp>
#include <cstddef>
#include <string>

#include "tools/failure.h"
#include "tools/tool_table.h"

namespace belljar::tools {

inline constexpr std::size_t kMaxCommands = 100;  // of one call, and of files that it asks for
// Of process_start: more than a program can be given, or than a person would write.
inline constexpr std::size_t kMaxVariables = 1'000;
inline constexpr std::size_t kMaxVariableBytes = std::size_t{1} << 20;  // names and values of all

// The message names the argument and says what it must be.
Status check_arguments(const Tool& tool, const boost::json::object& arguments);

// `where` begins the message: "timeout_ms".
Status check_value(const boost::json::object& schema, const boost::json::value& value,
                   const std::string& where);

}  // namespace belljar::tools
