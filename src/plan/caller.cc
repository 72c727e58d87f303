#include "belljar/caller.h"

#include <unistd.h>

#include <filesystem>
#include <string_view>

namespace belljar {

Caller this_process() {
  Caller caller{.home = "/", .cwd = {}, .environment = {}};
  std::error_code ignored;  // a folder that was deleted: then the plan says so
  caller.cwd = std::filesystem::current_path(ignored);
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    std::string_view text = *variable;
    if (text.starts_with("HOME=/")) caller.home = text.substr(5);
    caller.environment.emplace_back(text);
  }
  return caller;
}

}  // namespace belljar
