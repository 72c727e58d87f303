#include "cli/help.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace belljar::cli {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kMaxNameWidth = 28;  // a longer one has its text on the next line

constexpr std::string_view kAbout =
    "belljar runs code that you do not trust where it can work but cannot do damage.\n";

constexpr std::string_view kExamples =
    "  belljar exec -- python3 unknown.py          it sees this folder, not your home\n"
    "  belljar exec --network=none -- make test    and no network\n"
    "  belljar explain --why ~/.ssh/id_rsa         why is this denied, what would allow it\n"
    "  belljar doctor                              what can this host enforce\n";

struct Row {
  std::string name;
  std::string text;
};

void add_heading(std::string& to, std::string_view heading) {
  to.append("\n").append(styled(heading, Style::bold, STDOUT_FILENO)).append("\n");
}

// Words in lines of kWidth, each after the first indented.
void add_wrapped(std::string& to, std::string_view text, std::size_t indent) {
  std::size_t column = indent;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (column > indent && column + 1 + word.size() > kWidth) {
      to.append("\n").append(indent, ' ');
      column = indent;
    }
    if (column > indent) to.push_back(' '), ++column;
    to.append(word);
    column += word.size();
  }
  to.push_back('\n');
}

void add_rows(std::string& to, const std::vector<Row>& rows) {
  std::size_t width = 0;
  for (const Row& row : rows)
    if (row.name.size() <= kMaxNameWidth) width = std::max(width, row.name.size());
  const std::size_t indent = width + 4;
  for (const Row& row : rows) {
    to.append("  ").append(row.name);
    if (row.name.size() > width)
      to.append("\n").append(indent, ' ');
    else
      to.append(width + 2 - row.name.size(), ' ');
    add_wrapped(to, row.text, indent);
  }
}

std::string flag_name(std::string_view name, char letter, std::string_view value) {
  std::string text = letter != 0 ? std::string("-") + letter + ", --" : std::string("--");
  text.append(name);
  if (!value.empty()) text.append("=").append(value);
  return text;
}

std::vector<Row> rows_of(std::span<const FlagHelp> flags) {
  std::vector<Row> rows;
  for (const FlagHelp& flag : flags)
    rows.push_back({flag_name(flag.name, flag.letter, flag.value), std::string(flag.help)});
  return rows;
}

// What the flags of a policy are about; those that are not named here are about all of it.
struct Heading {
  std::string_view text;
  std::span<const std::string_view> keys;
};
constexpr std::string_view kFileKeys[] = {"deny_read",   "deny_write",    "allow_read",
                                          "allow_write", "extra_fs_read", "extra_fs_write",
                                          "hide",        "protect"};
constexpr std::string_view kNetworkKeys[] = {"network", "deny_net", "allow_net"};
constexpr std::string_view kVariableKeys[] = {"deny_env", "allow_env", "extra_env", "env"};
constexpr std::string_view kLimitKeys[] = {"max_memory_mb", "max_cpu_secs",   "max_procs",
                                           "max_open_fds",  "max_file_sz_mb", "timeout"};
constexpr std::string_view kPlaceKeys[] = {"workdir", "start_in", "home",
                                           "cache",   "tmp",      "credential"};
constexpr Heading kHeadings[] = {{"Policy", {}},
                                 {"Files", kFileKeys},
                                 {"Network", kNetworkKeys},
                                 {"Variables", kVariableKeys},
                                 {"Limits", kLimitKeys},
                                 {"Places", kPlaceKeys}};

bool is_under(const Heading& heading, const Key& key) {
  auto has = [&](const Heading& other) {
    return std::ranges::find(other.keys, key.name) != other.keys.end();
  };
  return heading.keys.empty() ? std::ranges::none_of(kHeadings, has) : has(heading);
}

std::vector<Row> rows_of(const Heading& heading) {
  std::vector<Row> rows;
  for (const Key& key : keys()) {
    if (!is_under(heading, key)) continue;
    std::string text(key.help);
    if (is_repeatable(key.kind)) text += " (repeatable)";
    rows.push_back({flag_name(key.flag, key.letter, key.value), std::move(text)});
  }
  return rows;
}

std::string help_of_belljar() {
  std::string text(kAbout);
  text += "\nUsage: belljar [FLAGS] COMMAND ...\n";
  add_heading(text, "Commands");
  std::vector<Row> rows;
  for (const Subcommand& command : kSubcommands) {
    if (command.hidden) continue;
    std::string name(command.name);
    if (!command.alias.empty()) name.append(", ").append(command.alias);
    rows.push_back({name, std::string(command.purpose)});
  }
  add_rows(text, rows);
  add_heading(text, "Flags of every command");
  add_rows(text, rows_of(kGlobalFlags));
  add_heading(text, "Examples");
  text += kExamples;
  text += "\nbelljar help COMMAND says more about one.\n";
  return text;
}

std::string help_of(const Subcommand& command) {
  std::string text = "belljar " + std::string(command.name) + ": " + std::string(command.purpose) +
                     "\n\nUsage: belljar " + std::string(command.name) + " " +
                     std::string(command.usage) + "\n";
  if (!command.alias.empty())
    text +=
        "       belljar " + std::string(command.alias) + " " + std::string(command.usage) + "\n";
  if (!command.flags.empty()) {
    add_heading(text, "Flags");
    add_rows(text, rows_of(command.flags));
  }
  if (command.accepts != Accepts::own_flags) {
    for (const Heading& heading : kHeadings) {
      add_heading(text, heading.text);
      add_rows(text, rows_of(heading));
    }
  }
  add_heading(text, "Flags of every command");
  add_rows(text, rows_of(kGlobalFlags));
  if (!command.more.empty()) text.append("\n").append(command.more);
  return text;
}

}  // namespace

bool is_repeatable(Kind kind) {
  switch (kind) {
    case Kind::paths:
    case Kind::globs:
    case Kind::hosts:
    case Kind::ports:
    case Kind::names:
    case Kind::assignments:
    case Kind::mounts:
    case Kind::promises:
      return true;
    default:
      return false;
  }
}

int print_help(const Subcommand* command) {
  std::fputs((command == nullptr ? help_of_belljar() : help_of(*command)).c_str(), stdout);
  return 0;
}

std::unexpected<Error> unknown_command(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Subcommand& command : kSubcommands)
    if (!command.hidden) names.push_back(command.name);
  if (name == "version") return fail("there is no command \"version\"", 0, "belljar --version");
  std::string_view near = nearest(name, names);
  return fail("there is no command \"" + std::string(name) + "\"", 0,
              near.empty() ? "to run a program: belljar exec -- " + std::string(name)
                           : "did you mean belljar " + std::string(near) + "?");
}

int help(const Arguments& arguments) {
  if (arguments.empty()) return print_help(nullptr);
  if (arguments.size() > 1) return report(fail("help takes the name of one command"));
  const Subcommand* command = find_subcommand(arguments[0]);
  if (command != nullptr) return print_help(command);
  return report(
      fail("there is no command \"" + arguments[0] + "\"", 0, "belljar --help lists them"));
}

}  // namespace belljar::cli
