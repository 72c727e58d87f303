#include "policy/toml.h"

#include <algorithm>
#include <optional>

#include "base/printable.h"
#include "policy/profiles.h"
#include "policy/tasks.h"

#define TOML_EXCEPTIONS 0
#define TOML_MAX_NESTED_VALUES 32  // of stack frames; the deepest thing here is a list in a table
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace belljar {
namespace {

// toml++ 3.3 frees nested tables by recursion and bounds the nesting of values
// but not that of dotted keys: `[a.a.a…]` with 400,000 dots overflows the stack.
// https://github.com/marzer/tomlplusplus/pull/242
constexpr std::ptrdiff_t kMaxDots = 8192;

// Nobody extends so many; a circle further on is found by it too.
constexpr std::size_t kMaxChain = 32;

// Each is judged on its own where a project is not trusted.
constexpr std::size_t kMaxTables = 1000;

struct Text {
  std::string text;
  Position position;
};

Position position_of(const toml::source_region& region) {
  return {.line = region.begin.line, .column = region.begin.column};
}
Position position_of(const toml::node& node) { return position_of(node.source()); }
Position position_of(const toml::key& key) { return position_of(key.source()); }

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string did_you_mean(std::string_view wrong, std::span<const std::string_view> names,
                         std::string otherwise = {}) {
  std::string_view near = nearest(wrong, names);
  return near.empty() ? otherwise : "did you mean " + std::string(near) + "?";
}

template <class Map>
std::vector<std::string_view> names_of(const Map& map) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return names;
}

std::string_view expected(Kind kind) {
  switch (kind) {
    case Kind::flag:
      return "true or false";
    case Kind::count:
      return "a whole number, or \"unlimited\"";
    case Kind::duration:
      return "a whole number of seconds, or a string such as \"2m\"";
    case Kind::assignments:
      return "a table of strings, or a list of \"NAME=VALUE\"";
    case Kind::choice:
    case Kind::name:
    case Kind::path:
    case Kind::tmp:
      return "a string";
    default:
      return "a list of strings";
  }
}

bool is_list(Kind kind) { return expected(kind) == expected(Kind::paths); }

class Reader {
 public:
  explicit Reader(const ConfigSource& source) : source_(source) {
    config_.file = source.file;
    config_.folder = source.origin.folder;
  }

  Result<Config> read(const toml::table& root) {
    for (auto&& [key, node] : root) {
      if (key != "sandbox" && key != "profiles" && key != "tasks")
        return unknown(key, {{"sandbox", "profiles", "tasks"}}, "");
      const toml::table& table = *TRY(table_at(key, node));
      if (key == "sandbox") TRY(read_sandbox(table));
      if (key == "profiles") TRY(read_profiles(table));
      if (key == "tasks") TRY(read_tasks(key, table));
    }
    TRY(check_profiles());
    TRY(check_tasks());
    return std::move(config_);
  }

 private:
  std::unexpected<Error> wrong(Position position, std::string_view what,
                               std::string hint = {}) const {
    return std::unexpected(config_.error(position, what, std::move(hint)));
  }

  std::unexpected<Error> unknown(const toml::key& key, std::vector<std::string_view> own,
                                 std::string_view in) const {
    if (!in.empty())
      for (const Key& known : keys()) own.push_back(known.name);
    return wrong(position_of(key),
                 "unknown key " + quoted(key) + (in.empty() ? "" : " in ") + std::string(in),
                 did_you_mean(key, own, "belljar config schema lists them all"));
  }

  Result<const toml::table*> table_at(const toml::key& key, const toml::node& node) const {
    const toml::table* table = node.as_table();
    if (table != nullptr && table->size() > kMaxTables)
      return wrong(position_of(key), quoted(key) + " holds too many");
    if (table != nullptr) return table;
    return wrong(position_of(key), quoted(key) + " must be a table");
  }

  // ---- values ----
  Result<Text> string_in(std::string_view key, const toml::node& node,
                         std::string_view form) const {
    if (const auto* text = node.as_string()) return Text{text->get(), position_of(node)};
    return wrong(position_of(node), std::string(key) + ": must be " + std::string(form));
  }

  Result<std::vector<Text>> strings_in(std::string_view key, const toml::node& node,
                                       std::string_view form) const {
    std::vector<Text> texts;
    const toml::array* array = node.as_array();
    if (array == nullptr) {
      texts.push_back(TRY(string_in(key, node, form)));
      return texts;
    }
    for (const toml::node& element : *array) texts.push_back(TRY(string_in(key, element, form)));
    return texts;
  }

  Result<std::vector<Text>> assignments_in(std::string_view key, const toml::table& table) const {
    std::vector<Text> texts;
    for (auto&& [name, node] : table) {
      if (name.str().find('=') != std::string_view::npos)
        return wrong(position_of(name), "env: a name cannot hold \"=\"");
      Text value = TRY(string_in(key, node, "strings"));
      texts.push_back({std::string(name.str()) + "=" + value.text, position_of(name)});
    }
    return texts;
  }

  // A value as the texts that set() takes one by one.
  Result<std::vector<Text>> texts_in(const Key& key, const toml::node& node) const {
    const Position position = position_of(node);
    const auto* integer = node.as_integer();
    if (key.kind == Kind::flag)
      if (const auto* flag = node.as_boolean())
        return std::vector{Text{flag->get() ? "true" : "false", position}};
    if ((key.kind == Kind::count || key.kind == Kind::duration) && integer != nullptr)
      return std::vector{Text{std::to_string(integer->get()), position}};
    if (key.kind == Kind::assignments)
      if (const toml::table* table = node.as_table()) return assignments_in(key.name, *table);
    if (is_list(key.kind) || key.kind == Kind::assignments)
      return strings_in(key.name, node, expected(key.kind));

    const auto* text = node.as_string();
    const bool takes_text = key.kind == Kind::count ? text != nullptr && text->get() == "unlimited"
                                                    : key.kind != Kind::flag && text != nullptr;
    if (takes_text) return std::vector{Text{text->get(), position}};
    return wrong(position, std::string(key.name) + ": must be " + std::string(expected(key.kind)));
  }

  Status read_key(Section& section, const Key& key, const toml::key& at, const toml::node& node,
                  const Origin& origin) const {
    section.positions[std::string(key.name)] = position_of(at);
    for (const Text& value : TRY(texts_in(key, node))) {
      Status status = set(section.settings, key, value.text, origin);
      if (status) continue;
      std::string hint = did_you_mean(value.text, key.choices, status.error().hint);
      return wrong(value.position, status.error().what, std::move(hint));
    }
    return {};
  }

  // ---- tables ----
  Status read_sandbox(const toml::table& table) {
    for (auto&& [at, node] : table) {
      const Key* key = find_key(at);
      if (key == nullptr) return unknown(at, {}, "[sandbox]");
      TRY(read_key(config_.sandbox, *key, at, node, source_.origin));
    }
    return {};
  }

  // A name is typed on the command line and printed in lists.
  Status check_name(const toml::key& key, std::string_view what) const {
    const std::string_view name = key;
    const bool bad = name.empty() || name.starts_with('-') || printable(name) != name;
    if (bad)
      return wrong(position_of(key),
                   quoted(name) + " cannot be the name of a " + std::string(what));
    return {};
  }

  Status read_profiles(const toml::table& table) {
    for (auto&& [name, node] : table) {
      TRY(check_name(name, "profile"));
      if (find_profile(name) != nullptr)
        return wrong(position_of(name), "profile " + quoted(name) + " is built in",
                     "choose another name and extend it");
      if (std::ranges::find(source_.known_profiles, name.str()) != source_.known_profiles.end())
        return wrong(position_of(name), "profile " + quoted(name) + " is already your own",
                     "choose another name and extend it");
      const toml::table* definition = TRY(table_at(name, node));
      TRY(read_profile(name, *definition));
    }
    return {};
  }

  Status read_profile(const toml::key& name, const toml::table& table) {
    ProfileDefinition& profile = config_.profiles[std::string(name.str())];
    profile.position = position_of(name);
    for (auto&& [at, node] : table) {
      const Key* key = find_key(at);
      if (at == "extends")
        profile.extends = TRY(string_in(at, node, "a string")).text;
      else if (at == "profile")
        return wrong(position_of(at), "a profile does not name another one", "use extends");
      else if (key == nullptr)
        return unknown(at, {"extends"}, "a profile");
      else
        TRY(read_key(profile.section, *key, at, node, source_.origin));
    }
    return {};
  }

  Status read_tasks(const toml::key& at, const toml::table& table) {
    if (source_.owner == ConfigSource::Owner::person && !table.empty())
      return wrong(position_of(at), "tasks belong in a project's belljar.toml");
    for (auto&& [name, node] : table) {
      TRY(check_name(name, "task"));
      const toml::table* definition = TRY(table_at(name, node));
      TRY(read_task(name, *definition));
    }
    return {};
  }

  Status read_task(const toml::key& name, const toml::table& table) {
    Task& task = config_.tasks[std::string(name.str())];
    task.position = position_of(name);
    task.dir = config_.folder;
    if (const toml::node* dir = table.get("dir")) TRY(read_dir(task, *dir));
    const Origin origin{.folder = task.dir, .home = source_.origin.home};
    for (auto&& [at, node] : table) {
      const Key* key = find_key(at);
      if (at == "dir") continue;
      if (at == "description")
        task.description = TRY(string_in(at, node, "a string")).text;
      else if (at == "run")
        TRY(read_commands(task, node));
      else if (at == "depends")
        for (Text& other : TRY(strings_in(at, node, "a list of strings")))
          task.depends.push_back(std::move(other.text));
      else if (key == nullptr)
        return unknown(at, {"run", "dir", "depends", "description"}, "a task");
      else if (at == "workdir" && table.contains("dir"))
        return wrong(position_of(at), "a task has dir or workdir, not both");
      else
        TRY(read_key(task.section, *key, at, node, origin));
    }
    if (task.run.empty() && task.depends.empty())
      return wrong(task.position, "task " + quoted(name) + " has nothing to run");
    return {};
  }

  // `dir` is the workdir of a task, so for a policy it is that.
  Status read_dir(Task& task, const toml::node& node) const {
    Text dir = TRY(string_in("dir", node, "a string"));
    const Key& key = *find_key("workdir");
    if (Status status = set(task.section.settings, key, dir.text, source_.origin); !status)
      return wrong(dir.position, "dir" + status.error().what.substr(key.name.size()));
    task.section.positions["workdir"] = dir.position;
    task.dir = *task.section.settings.workdir;
    return {};
  }

  Status read_commands(Task& task, const toml::node& node) const {
    for (Text& command : TRY(strings_in("run", node, "a string or a list of strings"))) {
      // A NUL would end the command early, unseen.
      if (command.text.empty() || command.text.find('\0') != std::string::npos)
        return wrong(command.position, "run: an empty command, or one with a NUL byte");
      task.run.push_back(std::move(command.text));
    }
    return {};
  }

  // ---- names that stand for something ----
  Status check_profile_name(Position position, const std::string& name) const {
    const bool elsewhere =
        std::ranges::find(source_.known_profiles, name) != source_.known_profiles.end();
    if (elsewhere || find_profile(name) != nullptr || config_.profiles.contains(name)) return {};
    std::vector<std::string_view> known = names_of(config_.profiles);
    for (const Profile& profile : profiles()) known.push_back(profile.name);
    for (const std::string& other : source_.known_profiles) known.push_back(other);
    return wrong(position, "there is no profile " + quoted(name),
                 did_you_mean(name, known, "belljar profile list"));
  }

  Status check_section(const Section& section) const {
    if (!section.settings.profile) return {};
    return check_profile_name(section.positions.at("profile"), *section.settings.profile);
  }

  Status check_profiles() const {
    TRY(check_section(config_.sandbox));
    for (const auto& [name, task] : config_.tasks) TRY(check_section(task.section));
    for (const auto& [name, profile] : config_.profiles)
      TRY(check_profile_name(profile.position, profile.extends));
    for (const auto& [name, profile] : config_.profiles) TRY(check_chain(name, profile));
    return {};
  }

  Status check_chain(const std::string& name, const ProfileDefinition& profile) const {
    auto next = config_.profiles.find(profile.extends);
    for (std::size_t length = 1; next != config_.profiles.end(); ++length) {
      if (next->first == name)
        return wrong(profile.position, "profile " + quoted(name) + " extends itself");
      if (length > kMaxChain)
        return wrong(profile.position, "profile " + quoted(name) + " extends too many others");
      next = config_.profiles.find(next->second.extends);
    }
    return {};
  }

  Status check_tasks() const {
    for (const auto& [name, task] : config_.tasks)
      for (const std::string& other : task.depends)
        if (!config_.tasks.contains(other))
          return wrong(
              task.position,
              "task " + quoted(name) + " depends on " + quoted(other) + ", which is not there",
              did_you_mean(other, names_of(config_.tasks)));
    std::vector<std::string_view> all = names_of(config_.tasks);
    TRY(task_order(config_, all));
    return {};
  }

  const ConfigSource& source_;
  Config config_;
};

// "Error while parsing string: …" reads well after a position, in lower case.
Error syntax_error(const ConfigSource& source, const toml::parse_error& error) {
  std::string what(error.description());
  if (what.starts_with("Error")) what.front() = 'e';
  return config_error(source.file, position_of(error.source()), what, {});
}

}  // namespace

Error config_error(std::string_view file, Position position, std::string_view what,
                   std::string hint) {
  const std::string where = std::string(file) + ":" + std::to_string(position.line) + ":" +
                            std::to_string(position.column) + ": ";
  return {.what = printable(where + std::string(what)), .err = 0, .hint = printable(hint)};
}

Error Config::error(Position position, std::string_view what, std::string hint) const {
  return config_error(file, position, what, std::move(hint));
}

Result<Config> parse_config(std::string_view text, const ConfigSource& source) {
  if (text.size() > kMaxConfigBytes)
    return std::unexpected(config_error(source.file, {1, 1}, "the file is larger than 1 MiB", {}));
  if (std::ranges::count(text, '.') > kMaxDots)
    return std::unexpected(config_error(source.file, {1, 1}, "the file holds too many dots", {}));
  toml::parse_result parsed = toml::parse(text, std::string_view{});
  if (!parsed) return std::unexpected(syntax_error(source, parsed.error()));
  return Reader(source).read(parsed.table());
}

}  // namespace belljar
