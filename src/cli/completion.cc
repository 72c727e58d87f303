// completion: scripts for bash, zsh and fish, from the tables of commands and keys.
//
// They are made of plain words only (the tables hold no user's text; names of tasks and
// profiles are asked for when they are needed), so the only
// quoting needed is that of the help's apostrophes and, for zsh, its colons and
// brackets.
#include <algorithm>
#include <cstdio>

#include "cli/configuration.h"
#include "cli/help.h"
#include "policy/profiles.h"

namespace belljar::cli {
namespace {

// A flag of either table, as a shell needs to know it.
struct Word {
  std::string_view name;
  char letter;
  bool has_value;
  bool repeatable;
  std::string_view help;
  Offer offer;
  std::span<const std::string_view> choices;
};

Offer offer_of(const Key& key) {
  switch (key.kind) {
    case Kind::path:
      return Offer::folder;
    case Kind::tmp:
    case Kind::paths:
    case Kind::globs:
    case Kind::mounts:
      return Offer::file;
    case Kind::name:
      return Offer::profile;
    default:
      return Offer::nothing;
  }
}

std::vector<Word> words_of(std::span<const FlagHelp> flags) {
  std::vector<Word> words;
  for (const FlagHelp& flag : flags)
    words.push_back(
        {flag.name, flag.letter, !flag.value.empty(), false, flag.help, flag.offer, flag.choices});
  return words;
}

std::vector<Word> policy_words() {
  std::vector<Word> words;
  for (const Key& key : keys())
    words.push_back({key.flag, key.letter, key.kind != Kind::flag, is_repeatable(key.kind),
                     key.help, offer_of(key), key.choices});
  return words;
}

// All flags of a command but those that every one has.
std::vector<Word> words_of(const Subcommand& command) {
  std::vector<Word> words = words_of(command.flags);
  if (command.accepts == Accepts::own_flags) return words;
  std::vector<Word> policy = policy_words();
  words.insert(words.end(), policy.begin(), policy.end());
  return words;
}

// What `belljar completion WORD` lists for the scripts: names that depend on the folder and
// on the person. Empty: nothing of that kind.
std::string_view listed_by_us(Offer offer) {
  if (offer == Offer::profile) return "profiles";
  return offer == Offer::task ? "tasks" : "";
}

// The values that are always the same: choices, commands.
std::string values_of(Offer offer, std::span<const std::string_view> choices) {
  std::string values;
  auto add = [&](std::string_view value) {
    values.append(values.empty() ? "" : " ").append(value);
  };
  for (std::string_view choice : choices) add(choice);
  if (offer == Offer::command)
    for (const Subcommand& command : kSubcommands)
      if (!command.hidden) add(command.name);
  return values;
}

std::string dashed(const Word& word) { return "--" + std::string(word.name); }

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
}

// ---- bash -------------------------------------------------------------------

// The flags of all commands that take a value. The same name means the same in each.
std::vector<Word> words_with_values() {
  std::vector<Word> all = words_of(kGlobalFlags);
  for (const Subcommand& command : kSubcommands)
    for (const Word& word : words_of(command))
      if (std::ranges::find(all, word.name, &Word::name) == all.end()) all.push_back(word);
  std::erase_if(all, [](const Word& word) { return !word.has_value; });
  return all;
}

std::string bash_pattern(const Word& word) {
  std::string pattern = dashed(word);
  if (word.letter != 0) pattern.append("|-").push_back(word.letter);
  return pattern;
}

std::string bash_action(const Word& word) {
  std::string values = values_of(word.offer, word.choices);
  if (!values.empty()) return "_belljar_offer '" + values + "'";
  if (!listed_by_us(word.offer).empty())
    return "_belljar_names " + std::string(listed_by_us(word.offer));
  if (word.offer == Offer::folder) return "_belljar_files -d";
  return word.offer == Offer::file ? "_belljar_files -f" : ":";
}

// `--flag=` where a value must follow, so that the shell goes on with it.
std::string bash_flags(const std::vector<Word>& words) {
  std::string flags;
  for (const Word& word : words) flags += " " + dashed(word) + (word.has_value ? "=" : "");
  return flags;
}

std::string bash_script() {
  const std::vector<Word> globals = words_of(kGlobalFlags);
  std::string script = R"(# bash completion for belljar: source <(belljar completion bash)

# Bash splits words at "=", unless a person has told it not to: then the flag is
# a part of the word, and of every answer.
_belljar_offer() {
  mapfile -t COMPREPLY < <(compgen -P "$prefix" -W "$1" -- "$cur")
}
_belljar_names() {  # profiles or tasks
  local names
  names=$(belljar completion "$1" 2> /dev/null) && _belljar_offer "$names"
}
_belljar_files() {
  compopt -o filenames
  mapfile -t COMPREPLY < <(compgen -P "$prefix" "$1" -- "$cur")
}
_belljar_program() {
  if [[ $cur == */* ]]; then _belljar_files -f; else mapfile -t COMPREPLY < <(compgen -c -- "$cur"); fi
}
_belljar_flags() {
  _belljar_offer "$1"
  [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
_belljar_value() {  # of the flag $1
  case $1 in
)";
  std::string with_value;
  for (const Word& word : words_with_values()) {
    with_value += (with_value.empty() ? "" : "|") + bash_pattern(word);
    script += "    " + bash_pattern(word) + ") " + bash_action(word) + " ;;\n";
  }
  script += "  esac\n}\n_belljar_takes_value() { [[ $1 == @(" + with_value + R"() ]]; }

_belljar() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev= prefix= command= i word
  COMPREPLY=()
  (( COMP_CWORD > 0 )) && prev=${COMP_WORDS[COMP_CWORD-1]}

  # Which command, and does a program of its own follow already?
  for (( i = 1; i < COMP_CWORD; i++ )); do
    word=${COMP_WORDS[i]}
    case $word in
      --) [[ -n $command ]] && { (( i++ )); break; } ;;
      -*)
        if [[ ${COMP_WORDS[i+1]} == = ]]; then (( i += 2 ))
        elif _belljar_takes_value "$word"; then (( i++ ))
        fi ;;
      *) if [[ -z $command ]]; then command=$word; else break; fi ;;
    esac
  done
  case $command in )";
  std::string programs;
  for (const Subcommand& command : kSubcommands) {
    if (command.accepts != Accepts::program) continue;
    programs.append(programs.empty() ? "" : "|").append(command.name);
    if (!command.alias.empty()) programs.append("|").append(command.alias);
  }
  script += programs + R"()
    if (( i < COMP_CWORD )); then  # an argument of the program
      if declare -F _command_offset > /dev/null; then _command_offset "$i"; else _belljar_files -f; fi
      return
    fi ;;
  esac

  # A value: --flag=VALUE in one word or in three, or --flag VALUE.
  if [[ $cur == = ]]; then cur= ; _belljar_value "$prev"; return; fi
  if [[ $prev == = && COMP_CWORD -gt 1 ]]; then _belljar_value "${COMP_WORDS[COMP_CWORD-2]}"; return; fi
  if [[ $cur == --*=* ]]; then
    prefix=${cur%%=*}= cur=${cur#*=}
    _belljar_value "${prefix%=}"
    return
  fi
  if _belljar_takes_value "$prev"; then _belljar_value "$prev"; return; fi

  case $command in
)";
  std::string names;
  for (const Subcommand& command : kSubcommands) {
    if (!command.hidden) names.append(names.empty() ? "" : " ").append(command.name);
    script += "    " + std::string(command.name);
    if (!command.alias.empty()) script.append("|").append(command.alias);
    script += ")\n      if [[ $cur == -* ]]; then _belljar_flags '" +
              bash_flags(words_of(command)).append(bash_flags(globals)).substr(1) +
              "'\n      else ";
    std::string values = values_of(command.offer, command.choices);
    if (command.accepts == Accepts::program)
      script += "_belljar_program";
    else if (!values.empty())
      script += "_belljar_offer '" + values + "'";
    else if (!listed_by_us(command.offer).empty())
      script += "_belljar_names " + std::string(listed_by_us(command.offer));
    else
      script += ":";
    script += "; fi ;;\n";
  }
  script += "    '')\n      if [[ $cur == -* ]]; then _belljar_flags '" +
            bash_flags(globals).substr(1) + "'\n      else _belljar_offer '" + names +
            "'; fi ;;\n  esac\n}\ncomplete -F _belljar belljar\n";
  return script;
}

// ---- zsh --------------------------------------------------------------------

std::string zsh_quoted(std::string_view text) {
  std::string quoted(text);
  replace_all(quoted, "'", "'\\''");
  return quoted;
}

// Inside a specification `[`, `]` and `:` have a meaning.
std::string zsh_help(std::string_view help) {
  std::string text = zsh_quoted(help);
  for (const char* special : {"[", "]", ":"})
    replace_all(text, special, std::string("\\") + special);
  return text;
}

std::string zsh_action(Offer offer, std::span<const std::string_view> choices) {
  std::string values = values_of(offer, choices);
  if (!values.empty()) return "(" + values + ")";
  if (!listed_by_us(offer).empty()) return " _belljar_names " + std::string(listed_by_us(offer));
  if (offer == Offer::folder) return "_files -/";
  return offer == Offer::file ? "_files" : " ";
}

std::string zsh_flags(const std::vector<Word>& words) {
  std::string specs;
  for (const Word& word : words) {
    for (bool is_long : {true, false}) {
      if (!is_long && word.letter == 0) continue;
      specs += " \\\n        '";
      if (word.repeatable) specs += "*";
      specs += is_long ? dashed(word) : std::string("-") + word.letter;
      if (word.has_value) specs += is_long ? "=" : "+";
      specs += "[" + zsh_help(word.help) + "]";
      if (word.has_value)
        specs += ":" + std::string(word.name) + ":" + zsh_action(word.offer, word.choices);
      specs += "'";
    }
  }
  return specs;
}

std::string zsh_script() {
  const std::string globals = zsh_flags(words_of(kGlobalFlags));
  std::string script =
      "#compdef belljar\n# zsh completion for belljar: put it into a folder of "
      "your fpath, as _belljar\n\n"
      "_belljar_names() { compadd -- ${(f)\"$(belljar completion $1 2> /dev/null)\"} }\n\n"
      "_belljar() {\n  local context state state_descr "
      "line\n  typeset -A opt_args\n  _arguments -C -S" +
      globals +
      " \\\n        '1:command:->command' \\\n        '*::argument:->argument'\n"
      "  case $state in\n  command)\n    local -a commands=(\n";
  for (const Subcommand& command : kSubcommands)
    if (!command.hidden)
      script += "      '" + std::string(command.name) + ":" + zsh_quoted(command.purpose) + "'\n";
  script += "    )\n    _describe command commands ;;\n  argument)\n    case $line[1] in\n";
  for (const Subcommand& command : kSubcommands) {
    script += "    " + std::string(command.name);
    if (!command.alias.empty()) script.append("|").append(command.alias);
    const bool program = command.accepts == Accepts::program;
    script += ")\n      _arguments -S";
    if (program) script += " -A '-*'";
    script += globals + zsh_flags(words_of(command));
    if (program)
      script += " \\\n        '(-):program: _command_names -e' \\\n        '*::argument: _normal'";
    else if (std::string action = zsh_action(command.offer, command.choices); action != " ")
      script += " \\\n        '1:argument:" + action + "'";
    script += " ;;\n";
  }
  // Loaded from fpath it is called by this last line; sourced, it must be announced.
  return script +
         "    esac ;;\n  esac\n}\n\n"
         "if [[ $funcstack[1] == _belljar ]]; then _belljar \"$@\"; else compdef _belljar belljar; "
         "fi\n";
}

// ---- fish -------------------------------------------------------------------

std::string fish_quoted(std::string_view text) {
  std::string quoted(text);
  replace_all(quoted, "\\", "\\\\");
  replace_all(quoted, "'", "\\'");
  return quoted;
}

std::string fish_names(Offer offer) {
  return "(belljar completion " + std::string(listed_by_us(offer)) + " 2> /dev/null)";
}

void add_fish_flags(std::string& script, const std::vector<Word>& words, const std::string& when) {
  for (const Word& word : words) {
    script += "complete -c belljar -n '" + when + "' -l " + std::string(word.name);
    if (word.letter != 0) script.append(" -s ").push_back(word.letter);
    if (word.has_value) {
      std::string values = values_of(word.offer, word.choices);
      if (!values.empty())
        script += " -x -a '" + values + "'";
      else if (!listed_by_us(word.offer).empty())
        script += " -x -a '" + fish_names(word.offer) + "'";
      else if (word.offer == Offer::folder)
        script += " -x -a '(__fish_complete_directories)'";
      else
        script += word.offer == Offer::file ? " -r -F" : " -x";
    }
    script += " -d '" + fish_quoted(word.help) + "'\n";
  }
}

std::string fish_script() {
  std::string script =
      "# fish completion for belljar: belljar completion fish > "
      "~/.config/fish/completions/belljar.fish\n\n"
      "# The words after the command's name that are no flags: is there a program yet?\n"
      "function __belljar_before_program\n"
      "    set -l words (commandline -opc)\n"
      "    set -e words[1]\n"
      "    set -l seen 0\n"
      "    for word in $words\n"
      "        switch $word\n"
      "            case '--'\n                return 1\n"
      "            case '-*'\n"
      "            case '*'\n                set seen (math $seen + 1)\n"
      "        end\n"
      "    end\n"
      "    test $seen -le 1\n"
      "end\n\ncomplete -c belljar -f\n";
  const std::string nothing_yet = "__fish_use_subcommand";
  for (const Subcommand& command : kSubcommands)
    if (!command.hidden)
      script += "complete -c belljar -n '" + nothing_yet + "' -a " + std::string(command.name) +
                " -d '" + fish_quoted(command.purpose) + "'\n";
  add_fish_flags(script, words_of(kGlobalFlags), "__belljar_before_program");
  for (const Subcommand& command : kSubcommands) {
    std::string when = "__fish_seen_subcommand_from " + std::string(command.name);
    if (!command.alias.empty()) when.append(" ").append(command.alias);
    const bool program = command.accepts == Accepts::program;
    add_fish_flags(script, words_of(command),
                   program ? when + "; and __belljar_before_program" : when);
    std::string values = values_of(command.offer, command.choices);
    if (program)
      script += "complete -c belljar -n '" + when +
                "; and __belljar_before_program' -x -a '(__fish_complete_command)'\n" +
                "complete -c belljar -n '" + when +
                "; and not __belljar_before_program' -x -a '(__fish_complete_subcommand)'\n";
    else if (!values.empty())
      script += "complete -c belljar -n '" + when + "' -x -a '" + values + "'\n";
    else if (!listed_by_us(command.offer).empty())
      script += "complete -c belljar -n '" + when + "' -x -a '" + fish_names(command.offer) + "'\n";
  }
  return script;
}

// The names come from files, perhaps a stranger's, and bash expands the words that it
// offers: only plain ones are listed.
void print_name(std::string_view name) {
  const bool plain = std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == ':';
  });
  if (plain) std::printf("%s\n", std::string(name).c_str());
}

void print_names(std::string_view kind) {
  if (kind == "profiles")
    for (const Profile& profile : profiles()) print_name(profile.name);
  // A file with a mistake in it must not stop the rest of a completion.
  const ConfigFiles files = read_config_files(config_places(this_caller())).value_or(ConfigFiles{});
  auto print_keys = [](const auto& map) {
    for (const auto& [name, value] : map) print_name(name);
  };
  if (kind == "profiles" && files.user) print_keys(files.user->profiles);
  if (kind == "profiles" && files.project) print_keys(files.project->config.profiles);
  if (kind == "tasks" && files.project) print_keys(files.project->config.tasks);
}

Result<int> print_completion(const Arguments& arguments) {
  const std::string shell = arguments.size() == 1 ? arguments[0] : "";
  if (shell == "profiles" || shell == "tasks") {
    print_names(shell);
    return 0;
  }
  std::string script = shell == "bash"   ? bash_script()
                       : shell == "zsh"  ? zsh_script()
                       : shell == "fish" ? fish_script()
                                         : "";
  if (script.empty()) return fail("completion needs one of bash, zsh, fish");
  std::fputs(script.c_str(), stdout);
  return 0;
}

}  // namespace

int completion(const Arguments& arguments) { return report(print_completion(arguments)); }

}  // namespace belljar::cli
