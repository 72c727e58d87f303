#include "cli/global_flags.h"

#include <algorithm>

namespace belljar::cli {
namespace {

const FlagHelp* find_global(std::string_view argument) {
  std::string_view name = argument.substr(0, argument.find('='));
  auto at = std::ranges::find_if(kGlobalFlags, [&](const FlagHelp& flag) {
    if (name.starts_with("--")) return name.substr(2) == flag.name;
    return name.size() == 2 && flag.letter != 0 && name[1] == flag.letter;
  });
  return at == std::end(kGlobalFlags) ? nullptr : at;
}

Status set_color(Output& output, std::string_view when) {
  if (when == "auto")
    output.color = Color::automatic;
  else if (when == "always")
    output.color = Color::always;
  else if (when == "never")
    output.color = Color::never;
  else
    return fail("--color: \"" + std::string(when) + "\" is not one of auto, always, never");
  return {};
}

Status set_flag(GlobalFlags& flags, std::string_view name, std::string_view value) {
  if (name == "help") flags.help = true;
  if (name == "version") flags.version = true;
  if (name == "quiet") flags.output.verbosity = Verbosity::quiet;
  if (name == "verbose") flags.output.verbosity = Verbosity::verbose;
  if (name == "color") return set_color(flags.output, value);
  return {};
}

}  // namespace

Status take_global_flags(Arguments& arguments, const Subcommand* command, GlobalFlags& into) {
  Arguments kept;
  kept.reserve(arguments.size());
  std::size_t at = 0;
  auto keep = [&] { kept.push_back(std::move(arguments[at++])); };
  while (at < arguments.size()) {
    const std::string& argument = arguments[at];
    const bool is_flag = argument.size() > 1 && argument[0] == '-';
    if (argument == "--") break;
    if (!is_flag && (command == nullptr || command->accepts == Accepts::program)) break;
    const FlagHelp* flag = is_flag ? find_global(argument) : nullptr;
    if (flag == nullptr) {
      const bool has_next = is_flag && takes_value(argument, command);
      keep();
      if (has_next && at < arguments.size()) keep();
      continue;
    }
    const std::size_t equals = argument.find('=');
    const std::string name = "--" + std::string(flag->name);
    std::string value;
    if (equals != argument.npos && flag->value.empty()) return fail(name + " takes no value");
    if (equals != argument.npos)
      value = argument.substr(equals + 1);
    else if (!flag->value.empty() && ++at < arguments.size())
      value = arguments[at];
    ++at;
    TRY(set_flag(into, flag->name, value));
  }
  while (at < arguments.size()) keep();
  arguments = std::move(kept);
  return {};
}

}  // namespace belljar::cli
