#include "cli/commands.h"

#include <algorithm>

#include "policy/keys.h"

namespace belljar::cli {

const Subcommand* find_subcommand(std::string_view name) {
  for (const Subcommand& command : kSubcommands)
    if (command.name == name || (!name.empty() && command.alias == name)) return &command;
  return nullptr;
}

bool takes_value(std::string_view flag, const Subcommand* command) {
  const bool is_long = flag.starts_with("--");
  const std::string_view name = flag.substr(is_long ? 2 : 1);
  auto is_this = [&](std::string_view long_name, char letter) {
    return is_long ? name == long_name : name.size() == 1 && letter != 0 && name[0] == letter;
  };
  auto is_asked = [&](const FlagHelp& f) { return is_this(f.name, f.letter) && !f.value.empty(); };
  if (std::ranges::any_of(kGlobalFlags, is_asked)) return true;
  if (command == nullptr) return false;
  if (std::ranges::any_of(command->flags, is_asked)) return true;
  return command->accepts != Accepts::own_flags && std::ranges::any_of(keys(), [&](const Key& key) {
           return is_this(key.flag, key.letter) && key.kind != Kind::flag;
         });
}

}  // namespace belljar::cli
