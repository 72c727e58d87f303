#include "cli/not_started.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/fd.h"
#include "base/syscall.h"
#include "plan/paths.h"
#include "plan/venv.h"

namespace belljar::cli {
namespace {

bool is_shown(const GuestsView& view, const std::string& path) {
  return std::ranges::any_of(view.trees,
                             [&](const std::string& tree) { return is_below(path, tree); });
}

// What must be shown besides for the guest to get to a program by this name; empty: nothing.
// `for_path`: by its folder, which is in PATH.
std::string not_seen(const GuestsView& view, const std::string& path, bool for_path) {
  const Result<Traced> traced = trace(path);
  if (!traced) return {};
  const std::string venv = venv_above(path);
  const std::string itself = for_path ? path.substr(0, path.rfind('/')) : path;
  for (const Link& link : traced->links) {
    const bool made = std::ranges::find(view.links, link.inside) != view.links.end();
    if (!made && !is_shown(view, link.inside)) return venv.empty() ? itself : venv;
  }
  if (is_shown(view, traced->path)) return {};
  // It gets as far as the links: those of a venv lead to the interpreter it was made with.
  if (!venv.empty() && !traced->links.empty()) return traced->path;
  return venv.empty() ? itself : venv;
}

bool can_execute(const std::string& path) { return ::access(path.c_str(), X_OK) == 0; }

// Where the command is on the host: by the guest's own PATH first, then by the caller's.
std::optional<std::string> find_outside(const std::string& command, const GuestsView& view) {
  if (command.find('/') != command.npos) {
    std::string path = command.starts_with('/') ? command : view.workdir + "/" + command;
    return can_execute(path) ? std::optional(path) : std::nullopt;
  }
  std::string_view path;
  for (const std::string& variable : view.environment)
    if (variable.starts_with("PATH=")) path = std::string_view(variable).substr(5);
  while (!path.empty()) {
    std::string folder(path.substr(0, path.find(':')));
    path.remove_prefix(std::min(folder.size() + 1, path.size()));
    if (!folder.empty() && can_execute(folder + "/" + command)) return folder + "/" + command;
  }
  return std::nullopt;
}

// Of a script, the program after `#!`, with what a Windows editor left behind it.
std::string interpreter_of(const std::string& script) {
  const Fd file(::open(script.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string text(256, '\0');
  const ssize_t n = retry([&] { return ::read(file.get(), text.data(), text.size()); });
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  text.resize(std::min(text.find('\n'), text.size()));
  if (!text.starts_with("#!")) return {};
  const std::size_t begin = std::min(text.find_first_not_of(" \t", 2), text.size());
  return text.substr(begin, text.find_first_of(" \t", begin) - begin);
}

}  // namespace

GuestsView view_of(const Plan& plan) {
  GuestsView view{
      .trees = {}, .links = {}, .environment = plan.environment, .workdir = plan.layout.workdir};
  if (plan.layout.whole_root) view.trees.emplace_back("/");
  for (const Place& place : plan.layout.places) {
    if (place.access != Access::hide) view.trees.push_back(place.path);
    if (place.from == "workdir") view.workdir = place.path;
  }
  for (const Link& link : plan.layout.links) view.links.push_back(link.inside);
  return view;
}

Error not_started(const std::string& command, int error, const GuestsView& view) {
  if (error != ENOENT) return {.what = command, .err = error, .hint = {}};
  const std::optional<std::string> outside = find_outside(command, view);
  if (!outside) {
    if (command.find('/') != command.npos) return {.what = command, .err = error, .hint = {}};
    return {.what = command + ": command not found", .err = 0, .hint = {}};
  }
  const bool for_path = command.find('/') == command.npos;
  if (const std::string missing = not_seen(view, *outside, for_path); !missing.empty())
    return {.what = command,
            .err = error,
            .hint = *outside + " exists, but the policy does not show it: --extra-read=" + missing};
  const std::string interpreter = interpreter_of(*outside);
  if (interpreter.empty()) return {.what = command, .err = error, .hint = {}};
  Error result{.what = command + ": its interpreter \"" + interpreter + "\" was not found",
               .err = 0,
               .hint = {}};
  if (interpreter.ends_with('\r'))
    result.what = command + ": its interpreter \"" + interpreter.substr(0, interpreter.size() - 1) +
                  "\\r\" was not found (Windows line ends?)";
  else if (const std::string missing = not_seen(view, interpreter, false); !missing.empty())
    result.hint = interpreter + " exists, but the policy does not show it: --extra-read=" + missing;
  return result;
}

}  // namespace belljar::cli
