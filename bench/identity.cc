#include "identity.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace bench {
namespace {

void become(const passwd& user) {
  if (user.pw_uid != ::geteuid() && (::initgroups(user.pw_name, user.pw_gid) < 0 ||
                                     ::setresgid(user.pw_gid, user.pw_gid, user.pw_gid) < 0 ||
                                     ::setresuid(user.pw_uid, user.pw_uid, user.pw_uid) < 0)) {
    std::perror("become the user");
    ::_exit(2);
  }
  // Having changed its uid, a process may not write its own maps until it says this.
  ::prctl(PR_SET_DUMPABLE, 1);
  const std::string path = std::getenv("PATH");
  ::clearenv();
  ::setenv("HOME", user.pw_dir, 1);
  ::setenv("PATH", path.c_str(), 1);
  ::setenv("LANG", "C.UTF-8", 1);
  ::setenv("TERM", "dumb", 1);
}

[[noreturn]] void measure_in_child(const passwd& user, int report_fd,
                                   const std::function<Report()>& measure) {
  become(user);
  std::string folder = std::string(user.pw_dir) + "/belljar-bench-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr || ::chdir(folder.c_str()) < 0) {
    std::perror(folder.c_str());
    ::_exit(2);
  }
  Report report = measure();
  [[maybe_unused]] ssize_t n = ::write(report_fd, report.text.data(), report.text.size());
  std::error_code ignored;  // then it is left behind, in the user's own home
  std::filesystem::remove_all(folder, ignored);
  ::_exit(report.missed ? 1 : 0);
}

}  // namespace

Report measure_as(const std::string& name, const std::function<Report()>& measure) {
  const passwd* user = name.empty() ? ::getpwuid(::geteuid()) : ::getpwnam(name.c_str());
  if (user == nullptr) return {"There is no user " + name + ".\n", true};
  int pipe_fds[2];
  if (::pipe2(pipe_fds, O_CLOEXEC) < 0) return {"No pipe.\n", true};
  pid_t pid = ::fork();
  if (pid == 0) measure_in_child(*user, pipe_fds[1], measure);
  ::close(pipe_fds[1]);
  Report report;
  report.text =
      std::string("\n### As ") + (user->pw_uid == 0 ? "root" : "an ordinary user") + "\n\n";
  char buffer[4096];
  for (ssize_t n; (n = ::read(pipe_fds[0], buffer, sizeof buffer)) > 0;)
    report.text.append(buffer, static_cast<std::size_t>(n));
  ::close(pipe_fds[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  report.missed = status != 0;
  return report;
}

Report measure_as_everyone(const std::string& user, const std::function<Report()>& measure) {
  Report all;
  if (user.empty() || ::geteuid() == 0) all = measure_as("", measure);
  if (user.empty()) return all;
  Report theirs = measure_as(user, measure);
  return {all.text + theirs.text, all.missed || theirs.missed};
}

}  // namespace bench
