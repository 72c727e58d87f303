#include "tools/tool_table.h"

#include <algorithm>

#include "base/commas.h"
#include "base/printable.h"
#include "tools/tool_schemas.h"

namespace belljar::tools {
namespace {

// What a model must know before it calls. Figures are those of the headers.
constexpr std::string_view kPython =
    "Runs Python code in an interpreter that stays alive: variables, imports and files last from "
    "call to call. The value of a last expression is returned, figures of matplotlib come back as "
    "images, and files that are new or changed are listed. Top-level await works; input() does "
    "not. Code that runs too long is interrupted, and what it printed is kept.";
constexpr std::string_view kShell =
    "Runs commands in a shell that stays alive: the folder, variables and background jobs last "
    "from call to call. Each command's exit code is returned. There is no terminal and nothing to "
    "read from standard input. Python and the shell see the same files.";
constexpr std::string_view kRead =
    "Reads a text file, its lines numbered as `12: text`. At most 2,000 lines come at once; go on "
    "with offset. Longer lines are cut at 2,000 characters. PNG, JPEG, GIF and WebP files come "
    "back as images. Other binary files are refused.";
constexpr std::string_view kWrite =
    "Writes a whole file, new or in place of another, of which the mode is kept. Folders on the "
    "way are made. The file is replaced at once: nobody sees half of it. To change a part of a "
    "file, use edit.";
constexpr std::string_view kEdit =
    "Replaces a text in a file. old_string must be in the file exactly, with its spaces and "
    "indentation, and once; give more of the lines around it if it is not the only one, or set "
    "replace_all. Line ends (LF or CRLF) stay as they are.";
constexpr std::string_view kGlob =
    "Lists files by a pattern, the newest first, at most 1,000. `**` is any number of folders: "
    "`*.py` finds only those in the folder itself, `**/*.py` all. Also `?`, `[a-z]` and `{a,b}`. "
    "What .gitignore names is left out, and so are .git and symbolic links.";
constexpr std::string_view kGrep =
    "Searches files for lines that match a regular expression (RE2: no look-around, no "
    "back-references). Ends at 100 matches. What .gitignore names is left out, and so are .git, "
    "symbolic links and binary files. Narrow it with path and include.";
constexpr std::string_view kSessionList = "Lists the sessions that you can use, and how they are.";
constexpr std::string_view kSessionClose =
    "Ends a session with all that runs in it. Its files are removed, unless its working folder is "
    "a shared one.";
constexpr std::string_view kSessionReset =
    "Gives a session a fresh Python interpreter. Files, the shell and what else runs there stay.";
constexpr std::string_view kProcessStart =
    "Starts a program that runs on while you do other things, such as a server or a long build. "
    "Ask how it is with process_poll. It ends with the session.";
constexpr std::string_view kProcessPoll =
    "Says whether a process still runs, and what it has printed since the last answer about it, "
    "whichever tool gave that. With wait_ms it waits until there is something new, or its end.";
constexpr std::string_view kProcessWrite =
    "Writes text to the standard input of a process. What it says to that comes later: poll for "
    "it.";
constexpr std::string_view kProcessSignal =
    "Sends a signal to a process and all that it started: INT asks it to stop, KILL makes it.";

enum Traits : unsigned { nothing = 0, read_only = 1, destructive = 2, runs_code = 4 };

Tool make(std::string_view name, std::string_view title, std::string_view about, unsigned traits) {
  schemas::Schemas its = schemas::of(name);
  return {.name = name,
          .title = title,
          .about = about,
          .read_only = (traits & read_only) != 0,
          .destructive = (traits & destructive) != 0,
          .runs_code = (traits & runs_code) != 0,
          .input_schema = std::move(its.input),
          .output_schema = std::move(its.output)};
}

std::string writable_places(const std::vector<std::string>& places) {
  if (places.empty()) return "Nothing can be written here.";
  return "Files can be written in " + with_commas(places) + " and nowhere else.";
}

// The guest's /tmp is a place that only its own programs reach.
std::vector<std::string> places_of_tools(const Facts& facts) {
  std::vector<std::string> places = facts.writable;
  std::erase(places, "/tmp");
  return places;
}

// Their authors need not be those who ask, so what they say is cut and kept on a line.
std::string skills_there(const Facts& facts) {
  constexpr std::size_t kMostShown = 50;
  constexpr std::size_t kLongest = 300;
  if (facts.skills.empty()) return {};
  std::string text = "\n\nSkills: folders with instructions, of which SKILL.md is read first.";
  for (std::size_t i = 0; i < std::min(facts.skills.size(), kMostShown); ++i) {
    const SkillFact& skill = facts.skills[i];
    const std::string about = printable(skill.about.substr(0, kLongest));
    text += "\n- " + printable(skill.path) + ": " + about;
  }
  if (facts.skills.size() > kMostShown) text += "\n- and more: see skills/";
  return text;
}

bool takes_a_path(const Tool& tool) {
  const boost::json::object& properties = tool.input_schema.at("properties").as_object();
  return properties.contains("path");
}

}  // namespace

const std::vector<Tool>& all_tools() {
  static const std::vector<Tool> all = {
      make("python", "Run Python", kPython, destructive | runs_code),
      make("shell", "Run shell commands", kShell, destructive | runs_code),
      make("read", "Read a file", kRead, read_only),
      make("write", "Write a file", kWrite, destructive),
      make("edit", "Edit a file", kEdit, destructive),
      make("glob", "Find files by name", kGlob, read_only),
      make("grep", "Search in files", kGrep, read_only),
      make("session_list", "List sessions", kSessionList, read_only),
      make("session_close", "End a session", kSessionClose, destructive),
      make("session_reset", "Restart Python", kSessionReset, destructive),
      make("process_start", "Start a process", kProcessStart, destructive | runs_code),
      // It takes the output away, so asking twice is not the same as asking once.
      make("process_poll", "Look at a process", kProcessPoll, nothing),
      make("process_write", "Write to a process", kProcessWrite, destructive),
      make("process_signal", "Signal a process", kProcessSignal, destructive),
  };
  return all;
}

const Tool* find_tool(std::string_view name) {
  const auto found = std::ranges::find(all_tools(), name, &Tool::name);
  return found == all_tools().end() ? nullptr : &*found;
}

std::string describe(const Tool& tool, const Facts& facts) {
  std::string text(tool.about);
  if (takes_a_path(tool))
    text +=
        "\n\nPaths are those that the shell sees: absolute, or relative to " + facts.workdir + ".";
  if (tool.name == "write" || tool.name == "edit")
    text += " " + writable_places(places_of_tools(facts));
  if (tool.name == "read") text += skills_there(facts);
  if (!tool.runs_code) return text;
  text += "\n\nIt runs in a sandbox. The working folder is " + facts.workdir + ". " +
          writable_places(facts.writable);
  if (!facts.network.empty()) text += " Network: " + facts.network + ".";
  if (!facts.limits.empty()) text += " Limits: " + with_commas(facts.limits) + ".";
  return text + skills_there(facts);
}

boost::json::array tools_as_json(const Facts& facts) {
  boost::json::array list;
  for (const Tool& tool : all_tools()) {
    boost::json::object one;
    one["name"] = tool.name;
    one["title"] = tool.title;
    one["description"] = describe(tool, facts);
    one["read_only"] = tool.read_only;
    one["destructive"] = tool.destructive;
    one["input_schema"] = tool.input_schema;
    one["output_schema"] = tool.output_schema;
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace belljar::tools
