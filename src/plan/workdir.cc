#include "plan/workdir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <vector>

#include "base/account.h"
#include "layers/layout.h"

namespace belljar {
namespace {

// A home that must not be handed over by mistake.
struct Guarded {
  std::string home;  // by its real name: a symlink to the home is the home
  std::string whose;
};

std::string real_name(const std::string& path) {
  std::error_code ignored;  // what cannot be resolved is compared as it stands
  return std::filesystem::weakly_canonical(path, ignored);
}

// Who became root by sudo.
std::optional<uid_t> sudo_uid(const Caller& caller) {
  constexpr std::string_view kName = "SUDO_UID=";
  for (const std::string& variable : caller.environment) {
    if (!variable.starts_with(kName)) continue;
    uid_t uid = 0;
    const char* end = variable.data() + variable.size();
    const auto [stop, error] = std::from_chars(variable.data() + kName.size(), end, uid);
    if (error == std::errc() && stop == end) return uid;
  }
  return std::nullopt;
}

// HOME says whose surroundings these are, not whose folders: under sudo it is root's, in a
// service perhaps none that anybody lives in.
std::vector<Guarded> guarded_homes(const std::string& folder, const Caller& caller) {
  std::vector<Guarded> homes = {{real_name(caller.home), "your home"}};
  auto add = [&](uid_t uid, bool own) {
    const std::optional<Account> account = account_of(uid);
    if (account && !account->home.empty())
      homes.push_back(
          {real_name(account->home), own ? "your home" : "the home of " + account->name});
  };
  add(::geteuid(), true);
  if (const std::optional<uid_t> uid = sudo_uid(caller)) add(*uid, true);
  struct stat found{};
  if (::geteuid() == 0 && ::stat(folder.c_str(), &found) == 0) add(found.st_uid, false);
  return homes;
}

constexpr const char* kSystems =
    " is the system's: the program could change what every other one relies on";

bool is_the_systems(std::string_view folder) {
  auto is_in = [&](const char* tree) { return is_below(folder, tree); };
  // Where people do work.
  for (const char* others : {"/usr/src", "/usr/local/src", "/dev/shm"})
    if (is_in(others)) return false;
  return std::ranges::any_of(
      std::initializer_list<const char*>{"/usr", "/etc", "/bin", "/sbin", "/lib", "/lib64", "/boot",
                                         "/dev", "/proc", "/sys"},
      is_in);
}

// `called` is what the person knows it as. nullopt: it can be meant.
std::optional<std::string> why_not(const std::string& named, const std::string& called,
                                   const Caller& caller) {
  const std::string folder = real_name(named);
  if (folder == "/") return called + " is /: there is no project here to work on";
  const std::vector<Guarded> homes = guarded_homes(folder, caller);
  auto found = std::ranges::find(homes, folder, &Guarded::home);
  if (found == homes.end())
    found =
        std::ranges::find_if(homes, [&](const Guarded& at) { return is_below(at.home, folder); });
  if (found != homes.end())
    return called + " " + named + (folder == found->home ? " is " : " holds ") + found->whose +
           ": the program could read " + (found->whose == "your home" ? "your" : "the") +
           " keys and change everything";
  if (is_the_systems(folder)) return called + " " + named + kSystems;
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
  const bool never = caller.cwd == "/" || is_the_systems(real_name(caller.cwd));
  const std::string anyway = " (-C " + quoted(caller.cwd) + " does it anyway)";
  return fail(*why, 0, "cd into a project folder" + (never ? "" : anyway));
}

Status refuse_system_folder(const std::string& real) {
  if (!is_the_systems(real)) return {};
  return fail("workdir " + real + kSystems, 0,
              "--start-in=" + quoted(real) +
                  " starts there, and the workdir stays another folder; --extra-write=" +
                  quoted(real) + " lets it be written");
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
  const std::string real = real_name(folder);
  const bool possible = !anyway.empty() && real != "/" && !is_the_systems(real);
  return fail(*why, 0,
              "name the folder of a project" +
                  (possible ? "; " + anyway + " " + quoted(folder) + " in its place does it anyway"
                            : std::string()));
}

Status check_home(const Files& files, const Caller& caller) {
  const bool has_own = files.home == Home::temporary || !files.home_dir.empty();
  if (!has_own || !files.home_inside.empty() || real_name(caller.home) != "/") return {};
  return fail(
      "HOME names no folder, and /etc/passwd has no home for uid " + std::to_string(::geteuid()), 0,
      "set HOME to a folder of yours");
}

}  // namespace belljar
