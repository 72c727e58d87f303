#include "plan/workdir.h"

#include <sys/stat.h>

#include <filesystem>

#include "layers/layout.h"

namespace belljar {
namespace {

// `called` is what the person knows it as. nullopt: it can be meant.
std::optional<std::string> why_not(const std::string& named, const std::string& called,
                                   const Caller& caller) {
  // By their real names: a symlink to the home is the home.
  std::error_code ignored;
  const std::string home = std::filesystem::weakly_canonical(caller.home, ignored);
  const std::string folder = std::filesystem::weakly_canonical(named, ignored);
  if (folder == "/") return called + " is /: there is no project here to work on";
  if (is_below(home, folder))
    return called + " " + named + (folder == home ? " is your home" : " holds your home") +
           ": the program could read your keys and change everything";
  for (const char* system :
       {"/usr", "/etc", "/bin", "/sbin", "/lib", "/boot", "/dev", "/proc", "/sys"})
    if (is_below(folder, system))
      return called + " " + named +
             " is the system's: the program could change what every other one relies on";
  return std::nullopt;
}

// As a shell takes it back.
std::string quoted(const std::string& path) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=:@%,";
  if (path.find_first_not_of(kPlain) == path.npos) return path;
  std::string text = "'";
  for (const char c : path) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

Status check_workdir(const Settings& settings, const Policy& policy, const Caller& caller) {
  const bool open = settings.profile.value_or("open") == "open";  // none is: open by a deny
  if (settings.workdir || open) return {};
  if (policy.mode == Mode::off) return {};
  if (caller.cwd.empty())
    return fail("the current folder does not exist any more", 0, "-C DIR names one");
  const std::optional<std::string> why = why_not(caller.cwd, "the current folder", caller);
  if (!why) return {};
  const std::string anyway = " (-C " + quoted(caller.cwd) + " does it anyway)";
  return fail(*why, 0, "cd into a project folder" + (caller.cwd == "/" ? "" : anyway));
}

Status check_workspace(const std::string& flag, const std::string& folder, const Caller& caller,
                       const std::string& anyway) {
  const std::string called = flag + ": the folder";
  struct stat found{};
  if (::stat(folder.c_str(), &found) < 0)
    return fail(called + " " + folder, errno,
                errno == ENOENT ? "make it first, or name the folder of a project" : "");
  if (!S_ISDIR(found.st_mode))
    return fail(flag + ": " + folder + " is no folder", 0, "name the folder that it is in");
  const std::optional<std::string> why = why_not(folder, called, caller);
  if (!why) return {};
  std::error_code ignored;  // else it is not /
  const bool possible =
      !anyway.empty() && std::filesystem::weakly_canonical(folder, ignored) != "/";
  return fail(*why, 0,
              "name the folder of a project" +
                  (possible ? "; " + anyway + " " + quoted(folder) + " in its place does it anyway"
                            : std::string()));
}

}  // namespace belljar
