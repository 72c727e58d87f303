#include "plan/workdir.h"

#include <filesystem>

#include "layers/layout.h"

namespace belljar {

Status check_workdir(const Settings& settings, const Policy& policy, const Caller& caller) {
  const bool open = settings.profile.value_or("open") == "open";  // none is: open by a deny
  if (settings.workdir || open) return {};
  if (policy.mode == Mode::off) return {};
  if (caller.cwd.empty())
    return fail("the current folder does not exist any more", 0, "-C DIR names one");
  // By their real names: a symlink to the home is the home.
  std::error_code ignored;
  const std::string home = std::filesystem::weakly_canonical(caller.home, ignored);
  const std::string folder = std::filesystem::weakly_canonical(caller.cwd, ignored);
  const std::string anyway = "cd into a project folder (-C " + caller.cwd + " does it anyway)";
  if (folder == "/")
    return fail("the current folder is /: there is no project here to work on", 0,
                "cd into a project folder");
  if (is_below(home, folder))
    return fail("the current folder " + caller.cwd +
                    (folder == home ? " is your home" : " holds your home") +
                    ": the program could read your keys and change everything",
                0, anyway);
  for (const char* system :
       {"/usr", "/etc", "/bin", "/sbin", "/lib", "/boot", "/dev", "/proc", "/sys"})
    if (is_below(folder, system))
      return fail("the current folder " + caller.cwd +
                      " is the system's: the program could change what every other one relies on",
                  0, anyway);
  return {};
}

}  // namespace belljar
