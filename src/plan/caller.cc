#include "belljar/caller.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>

#include "base/account.h"

// Which is in no header everywhere. NOLINTNEXTLINE(readability-redundant-declaration)
extern "C" char** environ;

namespace belljar {

namespace {

// Whether `name` is the current folder.
bool is_current(const char* name) {
  struct stat named{};
  struct stat here{};
  return ::stat(name, &named) == 0 && ::stat(".", &here) == 0 && named.st_dev == here.st_dev &&
         named.st_ino == here.st_ino;
}

}  // namespace

Caller this_process() {
  Caller caller;
  std::error_code ignored;  // a folder that was deleted: then the plan says so
  caller.cwd = std::filesystem::current_path(ignored);
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    std::string_view text = *variable;
    if (text.starts_with("HOME=/")) caller.home = text.substr(5);
    // The name by which the person came here may lead through symlinks: both it and
    // the folder's own name must work inside.
    if (text.starts_with("PWD=/") && is_current(*variable + 4)) caller.cwd = text.substr(4);
    caller.environment.emplace_back(text);
  }
  // Jobs of cron, units of systemd and containers may start us without one, or with /.
  if (caller.home.empty() || caller.home == "/") {
    const std::optional<Account> account = account_of(::geteuid());
    caller.home = account && !account->home.empty() ? account->home : "/";
  }
  return caller;
}

}  // namespace belljar
