#include "launcher/macos/spawn.h"

#include <spawn.h>

#include <cerrno>
#include <csignal>

namespace belljar::macos {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  // posix_spawn does not change them; its type is older than const.
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// Freed however the function is left.
struct Actions {
  posix_spawn_file_actions_t value{};
  Actions() { ::posix_spawn_file_actions_init(&value); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  ~Actions() { ::posix_spawn_file_actions_destroy(&value); }
};
struct Attributes {
  posix_spawnattr_t value{};
  Attributes() { ::posix_spawnattr_init(&value); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  ~Attributes() { ::posix_spawnattr_destroy(&value); }
};

}  // namespace

Result<pid_t> spawn(const Start& start) {
  std::vector<std::string> arguments = start.plan->wrap;
  arguments.insert(arguments.end(), start.arguments.begin(), start.arguments.end());
  const std::string& folder = start.folder.empty() ? start.plan->workdir : start.folder;

  Actions actions;
  int err = 0;
  auto must = [&](int result) {
    if (err == 0) err = result;
  };
  must(::posix_spawn_file_actions_adddup2(&actions.value, start.in_fd, 0));
  must(::posix_spawn_file_actions_adddup2(&actions.value, start.out_fd, 1));
  must(::posix_spawn_file_actions_adddup2(&actions.value, start.err_fd, 2));
  if (!folder.empty()) must(::posix_spawn_file_actions_addchdir_np(&actions.value, folder.c_str()));

  Attributes attributes;
  sigset_t none{}, all{};
  ::sigemptyset(&none);
  ::sigfillset(&all);
  must(::posix_spawnattr_setsigmask(&attributes.value, &none));
  must(::posix_spawnattr_setsigdefault(&attributes.value, &all));
  // CLOEXEC_DEFAULT: a descriptor that was not named here is a way out of the sandbox.
  must(::posix_spawnattr_setflags(
      &attributes.value, static_cast<short>(POSIX_SPAWN_SETSID | POSIX_SPAWN_CLOEXEC_DEFAULT |
                                            POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF)));
  if (err != 0) return fail("prepare to start sandbox-exec", err);

  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(start.environment);
  pid_t pid = -1;
  err = ::posix_spawn(&pid, argv[0], &actions.value, &attributes.value, argv.data(), envp.data());
  if (err != 0) return fail("start " + arguments[0], err, "belljar needs macOS's own sandbox-exec");
  return pid;
}

}  // namespace belljar::macos
