#include "tools/file_tools.h"

#include <boost/json.hpp>
#include <cmath>

#include "base/utf8.h"
#include "tools/arguments.h"
#include "tools/edit.h"
#include "tools/glob.h"
#include "tools/grep.h"
#include "tools/read.h"
#include "tools/tool_table.h"
#include "tools/write.h"

namespace belljar::tools {
namespace {

namespace json = boost::json;

// Arguments that were checked: the types are right, and what is required is there.
class Arguments {
 public:
  explicit Arguments(const json::object& object) : object_(object) {}

  std::optional<std::string> find_text(std::string_view name) const {
    const json::value* value = object_.if_contains(name);
    if (value == nullptr) return std::nullopt;
    return std::string(value->as_string());
  }
  std::string text(std::string_view name) const { return find_text(name).value_or(""); }
  std::optional<std::uint64_t> number(std::string_view name) const {
    const json::value* value = object_.if_contains(name);
    if (value == nullptr) return std::nullopt;
    return value->is_double() ? static_cast<std::uint64_t>(std::round(value->get_double()))
                              : value->to_number<std::uint64_t>();
  }
  bool flag(std::string_view name) const {
    const json::value* value = object_.if_contains(name);
    return value != nullptr && value->as_bool();
  }

 private:
  const json::object& object_;
};

json::array strings(const std::vector<std::string>& list) {
  return json::array(list.begin(), list.end());
}

Result<FileAnswer> call_read(const Workspace& workspace, const Arguments& arguments) {
  ReadResult result = TRY(read(workspace, {.path = arguments.text("path"),
                                           .offset = arguments.number("offset"),
                                           .limit = arguments.number("limit")}));
  FileAnswer answer{.text = std::move(result.text),
                    .structured = {{"path", repair_utf8(result.path)},
                                   {"lines", result.lines},
                                   {"truncated", result.truncated}},
                    .image_mime = std::move(result.image_mime),
                    .image_base64 = std::move(result.image_base64)};
  answer.structured["text"] = answer.text;
  if (result.total) answer.structured["total_lines"] = *result.total;
  if (answer.image_mime) answer.structured["image_mime"] = *answer.image_mime;
  return answer;
}

Result<FileAnswer> call_write(const Workspace& workspace, const Arguments& arguments) {
  WriteResult result =
      TRY(write(workspace, {.path = arguments.text("path"), .content = arguments.text("content")}));
  return FileAnswer{.text = std::move(result.text),
                    .structured = {{"path", repair_utf8(result.path)},
                                   {"bytes", result.bytes},
                                   {"created", result.created}}};
}

Result<FileAnswer> call_edit(const Workspace& workspace, const Arguments& arguments) {
  EditResult result = TRY(edit(workspace, {.path = arguments.text("path"),
                                           .old_string = arguments.text("old_string"),
                                           .new_string = arguments.text("new_string"),
                                           .replace_all = arguments.flag("replace_all")}));
  return FileAnswer{.text = std::move(result.text),
                    .structured = {{"path", repair_utf8(result.path)},
                                   {"replacements", result.replacements},
                                   {"line", result.line}}};
}

Result<FileAnswer> call_glob(const Workspace& workspace, const Arguments& arguments,
                             std::stop_token stop) {
  GlobResult result = TRY(glob(workspace, {.pattern = arguments.text("pattern"),
                                           .path = arguments.find_text("path"),
                                           .stop = std::move(stop)}));
  return FileAnswer{.text = std::move(result.text),
                    .structured = {{"paths", strings(result.paths)},
                                   {"total", result.total},
                                   {"truncated", result.truncated}}};
}

Result<FileAnswer> call_grep(const Workspace& workspace, const Arguments& arguments,
                             std::stop_token stop) {
  GrepResult result =
      TRY(grep(workspace, {.pattern = arguments.text("pattern"),
                           .path = arguments.find_text("path"),
                           .include = arguments.find_text("include"),
                           .context = arguments.number("context").value_or(0),
                           .letters = arguments.flag("ignore_case") ? Case::ignored : Case::matters,
                           .stop = std::move(stop)}));
  json::array matches;
  for (const GrepMatch& match : result.matches)
    matches.push_back({{"path", match.path},
                       {"line", match.line},
                       {"text", match.text},
                       {"before", strings(match.before)},
                       {"after", strings(match.after)}});
  return FileAnswer{.text = std::move(result.text),
                    .structured = {{"matches", std::move(matches)},
                                   {"files", result.files},
                                   {"truncated", result.truncated}}};
}

}  // namespace

bool is_file_tool(std::string_view name) {
  return name == "read" || name == "write" || name == "edit" || name == "glob" || name == "grep";
}

Result<FileAnswer> call_file_tool(const Workspace& workspace, std::string_view tool,
                                  const json::object& arguments, std::stop_token stop) {
  if (!is_file_tool(tool))
    return refuse(Kind::bad_argument, std::string(tool) + " is not a file tool",
                  "use read, write, edit, glob or grep");
  TRY(check_arguments(*find_tool(tool), arguments));
  const Arguments checked(arguments);
  if (tool == "read") return call_read(workspace, checked);
  if (tool == "write") return call_write(workspace, checked);
  if (tool == "edit") return call_edit(workspace, checked);
  if (tool == "glob") return call_glob(workspace, checked, std::move(stop));
  return call_grep(workspace, checked, std::move(stop));
}

}  // namespace belljar::tools
