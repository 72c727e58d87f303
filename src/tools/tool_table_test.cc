#include "tools/tool_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <set>

#include "policy/permissions.h"
#include "support/workspace.h"
#include "tools/arguments.h"
#include "tools/file_tools.h"

namespace belljar::tools {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using ::testing::Not;

const Facts kFacts{.writable = {"/workspace", "/tmp"},
                   .network = "only pypi.org",
                   .limits = {"2048 MB of memory", "60 s for a call"},
                   .workdir = "/workspace"};

TEST(ToolTable, has_every_tool_once_and_whole) {
  std::vector<std::string_view> names;
  for (const Tool& tool : all_tools()) {
    names.push_back(tool.name);
    EXPECT_FALSE(tool.title.empty()) << tool.name;
    EXPECT_GT(tool.about.size(), 30U) << tool.name;
    EXPECT_FALSE(tool.read_only && tool.destructive) << tool.name;
    EXPECT_EQ(find_tool(tool.name), &tool);
  }
  EXPECT_THAT(names, ::testing::ElementsAre("python", "shell", "read", "write", "edit", "glob",
                                            "grep", "session_list", "session_close",
                                            "session_reset", "process_start", "process_poll",
                                            "process_write", "process_signal"));
  EXPECT_TRUE(std::ranges::equal(names, tool_names()));  // permissions know them all
  EXPECT_EQ(find_tool("none"), nullptr);
}

// Every keyword is one that check_value knows: a schema must not promise what nobody checks.
void expect_known(const json::object& schema, const std::string& where) {
  static const std::set<std::string_view> known = {
      "type",      "description", "properties", "required",      "additionalProperties",
      "items",     "enum",        "minimum",    "maximum",       "minLength",
      "maxLength", "minItems",    "maxItems",   "maxProperties", "$schema"};
  EXPECT_TRUE(schema.contains("type")) << where;
  for (const json::key_value_pair& member : schema)
    EXPECT_TRUE(known.contains(std::string_view(member.key()))) << where << " " << member.key();
  if (const json::value* properties = schema.if_contains("properties"))
    for (const json::key_value_pair& property : properties->as_object())
      expect_known(property.value().as_object(), where + "." + std::string(property.key()));
  if (const json::value* items = schema.if_contains("items"))
    expect_known(items->as_object(), where + "[]");
  if (const json::value* required = schema.if_contains("required")) {
    for (const json::value& name : required->as_array())
      EXPECT_TRUE(schema.at("properties").as_object().contains(name.as_string())) << where;
  }
}

TEST(ToolTable, schemas_are_of_objects_and_have_known_keywords) {
  for (const Tool& tool : all_tools()) {
    EXPECT_EQ(tool.input_schema.at("type"), "object");
    EXPECT_EQ(tool.output_schema.at("type"), "object");
    EXPECT_EQ(tool.input_schema.at("additionalProperties"), false);
    expect_known(tool.input_schema, std::string(tool.name));
    expect_known(tool.output_schema, std::string(tool.name));
  }
}

TEST(ToolTable, descriptions_are_true_of_the_session) {
  for (const char* name : {"python", "shell", "process_start"}) {
    const std::string text = describe(*find_tool(name), kFacts);
    EXPECT_THAT(text, HasSubstr("/workspace, /tmp and nowhere else"));
    EXPECT_THAT(text, HasSubstr("Network: only pypi.org."));
    EXPECT_THAT(text, HasSubstr("2048 MB of memory, 60 s for a call"));
  }
  EXPECT_THAT(describe(*find_tool("write"), kFacts), HasSubstr("relative to /workspace"));
  EXPECT_THAT(describe(*find_tool("write"), kFacts), HasSubstr("in /workspace and nowhere else"));
  EXPECT_THAT(describe(*find_tool("read"), kFacts), Not(HasSubstr("nowhere else")));
  EXPECT_THAT(describe(*find_tool("write"), {.workdir = "/w"}),
              HasSubstr("Nothing can be written"));
}

std::string check(std::string_view tool, std::string_view arguments) {
  const Status status = check_arguments(*find_tool(tool), json::parse(arguments).as_object());
  return status ? "" : status.error().what;
}

TEST(ToolTable, descriptions_name_the_skills) {
  Facts facts = kFacts;
  EXPECT_THAT(describe(*find_tool("python"), facts), Not(HasSubstr("Skills")));
  facts.skills = {{.path = "skills/plots", .about = "draws plots\nand more"}};
  for (const char* name : {"python", "shell", "read", "process_start"}) {
    const std::string text = describe(*find_tool(name), facts);
    EXPECT_THAT(text, HasSubstr("\n- skills/plots: draws plots")) << name;
    EXPECT_THAT(text, Not(HasSubstr("plots\nand"))) << name;
  }
  facts.skills.assign(1000, {.path = "skills/x", .about = std::string(10'000, 'y')});
  EXPECT_LT(describe(*find_tool("read"), facts).size(), 20'000U);
}

TEST(Arguments, that_fit_pass) {
  for (const auto& [tool, arguments] : std::vector<std::pair<const char*, const char*>>{
           {"read", R"({"path": "a"})"},
           {"read", R"({"path": "a", "offset": 3.0, "limit": 2000, "session": "x"})"},
           {"read", R"({"path": "a", "offset": 2199163974726183.0})"},
           {"shell", R"({"commands": ["ls"], "one_shot": true})"},
           {"process_start", R"({"arguments": ["a"], "environment": {"A": "b"}})"},
           {"process_signal", R"({"process": "p", "signal": "INT"})"},
           {"session_list", "{}"}})
    EXPECT_EQ(check(tool, arguments), "") << arguments;
}

TEST(Arguments, that_do_not_fit_are_named) {
  EXPECT_EQ(check("read", "{}"), "path is missing");
  EXPECT_EQ(check("read", R"({"path": 1})"), "path must be of type string");
  EXPECT_EQ(check("read", R"({"path": null})"), "path must be of type string");
  EXPECT_EQ(check("read", R"({"path": "a", "offset": 0})"), "offset must be at least 1");
  EXPECT_EQ(check("read", R"({"path": "a", "offset": -1})"), "offset must be at least 1");
  EXPECT_EQ(check("read", R"({"path": "a", "offset": 1.5})"), "offset must be of type integer");
  EXPECT_EQ(check("read", R"({"path": "a", "offset": 1e300})"), "offset must be of type integer");
  EXPECT_EQ(check("read", R"({"path": "a", "limit": 2001})"), "limit must be at most 2000");
  EXPECT_EQ(check("read", R"({"path": "a", "offset": "1"})"), "offset must be of type integer");
  EXPECT_EQ(check("read", R"({"path": "a", "ofset": 1})"),
            "ofset is not known; there are path, offset, limit, session");
  EXPECT_THAT(check("shell", R"({"command": "ls"})"), HasSubstr("command is not known; there are"))
      << "and not that commands is missing";
  EXPECT_EQ(check("shell", R"({"commands": []})"), "commands must have at least 1 items");
  EXPECT_EQ(check("shell", R"({"commands": ["a", 1]})"), "commands[1] must be of type string");
  EXPECT_EQ(check("shell", R"({"commands": "ls"})"), "commands must be of type array");
  EXPECT_EQ(check("edit", R"({"path": "a", "old_string": "", "new_string": "b"})"),
            "old_string must have at least 1 characters");
  EXPECT_EQ(check("process_start", R"({"arguments": ["a"], "environment": {"A": 1}})"),
            "environment.A must be of type string");
  EXPECT_EQ(check("process_signal", R"({"process": "p", "signal": "ALRM"})").substr(0, 26),
            "signal must be one of INT,");
}

std::string check_text(std::string_view tool, json::object arguments, std::string_view name,
                       std::size_t size) {
  arguments[name] = std::string(size, 'a');
  const Status status = check_arguments(*find_tool(tool), arguments);
  return status ? "" : status.error().what;
}

TEST(Arguments, that_are_too_long_are_refused_before_anybody_reads_them) {
  const json::object read{{"path", "x"}};
  const json::object write{{"path", "x"}, {"content", "x"}};
  const json::object edit{{"path", "x"}, {"old_string", "x"}, {"new_string", "y"}};
  const json::object search{{"pattern", "x"}};
  const json::object start{{"arguments", json::array{"x"}}};
  for (const auto& [tool, arguments, name] :
       std::vector<std::tuple<const char*, json::object, const char*>>{
           {"read", read, "path"},
           {"write", write, "path"},
           {"edit", edit, "path"},
           {"glob", search, "path"},
           {"glob", search, "pattern"},
           {"grep", search, "path"},
           {"grep", search, "pattern"},
           {"grep", search, "include"},
           {"process_start", start, "folder"}}) {
    EXPECT_EQ(check_text(tool, arguments, name, 4096), "") << tool << " " << name;
    EXPECT_EQ(check_text(tool, arguments, name, 4097),
              std::string(name) + " must have at most 4096 characters")
        << tool;
  }
}

TEST(Arguments, variables_are_so_many_and_so_long) {
  auto check_variables = [](std::size_t count, std::size_t size) {
    json::object environment;
    for (std::size_t i = 0; i < count; ++i)
      environment["V" + std::to_string(i)] = std::string(size, 'a');
    json::object arguments{{"arguments", json::array{"x"}}};
    arguments["environment"] = std::move(environment);
    const Status status = check_arguments(*find_tool("process_start"), arguments);
    return status ? "" : status.error().what;
  };
  EXPECT_EQ(check_variables(kMaxVariables, 1000), "");
  EXPECT_EQ(check_variables(kMaxVariables + 1, 0), "environment must have at most 1000 members");
  EXPECT_EQ(check_variables(1, kMaxVariableBytes - 2), "");
  EXPECT_EQ(check_variables(1, kMaxVariableBytes), "environment must have at most 1 MiB");
}

class FileTools : public ::testing::Test {
 protected:
  FileAnswer call(std::string_view tool, std::string_view arguments) const {
    Result<FileAnswer> answer =
        call_file_tool(folders_.open(), tool, json::parse(arguments).as_object());
    EXPECT_TRUE(answer) << answer.error().message();
    if (!answer) return {};
    const Status status =
        check_value(find_tool(tool)->output_schema, json::value(answer->structured), "answer");
    EXPECT_TRUE(status) << status.error().message();
    return *std::move(answer);
  }

  belljar::testing::WorkspaceFolders folders_;
};

TEST_F(FileTools, answer_by_their_schemas) {
  EXPECT_EQ(call("write", R"({"path": "a/b", "content": "one\ntwo\n"})").structured.at("created"),
            true);
  EXPECT_EQ(call("read", R"({"path": "a/b", "offset": 2})").text, "2: two\n");
  EXPECT_EQ(call("read", R"({"path": "a/b", "limit": 1})").structured.at("total_lines"), 2);
  EXPECT_EQ(call("edit", R"({"path": "a/b", "old_string": "two", "new_string": "2"})")
                .structured.at("line"),
            2);
  EXPECT_EQ(
      call("edit", R"({"path": "a/b", "old_string": "n", "new_string": "N", "replace_all": true})")
          .structured.at("replacements"),
      1);
  EXPECT_EQ(call("glob", R"({"pattern": "*", "path": "a"})").structured.at("paths").at(0),
            "/workspace/a/b");
  const FileAnswer found = call("grep", R"({"pattern": "ONE", "ignore_case": true, "context": 1})");
  EXPECT_EQ(found.structured.at("matches").at(0).at("after").at(0), "2");
  folders_.inside.write("image", "GIF89a");
  EXPECT_EQ(call("read", R"({"path": "image"})").image_base64, "R0lGODlh");
}

TEST_F(FileTools, answers_are_utf8_whatever_names_hold) {
  folders_.inside.write("\xff", "needle\xff\n");
  for (const auto& [tool, arguments] : std::vector<std::pair<const char*, const char*>>{
           {"glob", R"({"pattern": "*"})"}, {"grep", R"({"pattern": "needle"})"}}) {
    const FileAnswer answer = call(tool, arguments);
    EXPECT_EQ(answer.text.find('\xff'), std::string::npos);
    EXPECT_EQ(json::serialize(answer.structured).find('\xff'), std::string::npos);
  }
}

TEST_F(FileTools, wrong_calls_are_typed_errors) {
  const auto kind = [&](std::string_view tool, const json::object& arguments) {
    return name(call_file_tool(folders_.open(), tool, arguments).error().kind);
  };
  EXPECT_EQ(kind("python", {}), "bad_argument");
  EXPECT_EQ(kind("read", {}), "bad_argument");
  EXPECT_EQ(kind("read", {{"path", "missing"}}), "not_found");
  EXPECT_EQ(kind("read", {{"path", "/etc/passwd"}}), "outside");
  EXPECT_EQ(kind("grep", {{"pattern", "("}}), "bad_pattern");
}

}  // namespace
}  // namespace belljar::tools
