// belljar::run on macOS: the whole of the seam to what is the same everywhere.
//
// Compiled for macOS only; it has not run (docs/macos.md).
#include <fcntl.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/remove_tree.h"
#include "belljar/belljar.h"
#include "launcher/macos/spawn.h"
#include "launcher/macos/supervise.h"
#include "launcher/macos/usage.h"
#include "plan/macos.h"
#include "plan/refusal.h"

namespace belljar {
namespace {

// The guest's home and /tmp, gone with it.
class ScratchFolder {
 public:
  static Result<ScratchFolder> make() {
    std::string path = "/private/tmp/belljar-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return fail("make a folder in /private/tmp", errno);
    return ScratchFolder(std::move(path));
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    if (!path_.empty()) remove_tree(path_);
  }
  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Names are the same to the file system in either case and in either form of an accent; the
// rules compare bytes. The kernel knows how a name is really written.
void add_real_spelling(seatbelt::Machine& machine, const std::string& path) {
  Result<seatbelt::Traced> traced = seatbelt::trace(machine, path);
  if (!traced) return;
  Fd fd(::open(traced->path.c_str(), O_EVTONLY | O_CLOEXEC));
  if (!fd) return;  // not there: then as it was given
  std::string real(MAXPATHLEN, '\0');
  if (::fcntl(fd.get(), F_GETPATH, real.data()) < 0) return;
  real.resize(real.find('\0'));
  if (real != traced->path) machine.links.push_back({traced->path, real});
}

seatbelt::Machine this_mac(const Policy& policy, const Caller& caller, std::string scratch) {
  seatbelt::Machine machine = observe_mac(policy, caller);
  machine.scratch = std::move(scratch);
  machine.processes = macos::processes_of_this_user();
  const Files& files = policy.files;
  std::vector<std::string> paths = {caller.home, files.workdir, files.home_dir, files.cache_dir,
                                    files.tmp_dir};
  for (const Grant& grant : files.grants) paths.push_back(grant.path);
  for (const std::string& path : paths)
    if (!path.empty()) add_real_spelling(machine, path);
  return machine;
}

Status make_folders(const seatbelt::Plan& plan) {
  for (const std::string& folder : plan.folders)
    if (::mkdir(folder.c_str(), 0700) < 0) return fail("make " + folder, errno);
  for (const seatbelt::Symlink& link : plan.links) {
    for (std::size_t at = plan.scratch.size() + 1; (at = link.path.find('/', at)) != link.path.npos;
         ++at)
      if (::mkdir(link.path.substr(0, at).c_str(), 0700) < 0 && errno != EEXIST)
        return fail("make the folder of " + link.path, errno);
    if (::symlink(link.text.c_str(), link.path.c_str()) < 0)
      return fail("make " + link.path, errno);
  }
  return {};
}

struct Ends {
  Fd ours, guests;
};
enum class Way { in, out };

// There is no pipe2; a descriptor that leaks into another thread's child in between is closed
// there by POSIX_SPAWN_CLOEXEC_DEFAULT, if that child is ours.
Result<Ends> make_ends(int given_fd, Way way) {
  const bool for_input = way == Way::in;
  Ends ends;
  if (given_fd >= 0) {
    ends.guests = Fd(::fcntl(given_fd, F_DUPFD_CLOEXEC, 3));
    if (!ends.guests) return fail("copy a descriptor", errno);
    return ends;
  }
  int fds[2];
  if (::pipe(fds) < 0) return fail("make a pipe", errno);
  Fd first(fds[0]), second(fds[1]);
  // Not 0, 1 or 2, where the guest's will be put one after the other.
  Fd to_read(::fcntl(fds[0], F_DUPFD_CLOEXEC, 3));
  Fd to_write(::fcntl(fds[1], F_DUPFD_CLOEXEC, 3));
  if (!to_read || !to_write) return fail("make a pipe", errno);
  ends.ours = std::move(for_input ? to_write : to_read);
  ends.guests = std::move(for_input ? to_read : to_write);
  // A guest that does not read must not end us.
  if (for_input) ::fcntl(ends.ours.get(), F_SETNOSIGPIPE, 1);
  ::fcntl(ends.ours.get(), F_SETFL, O_NONBLOCK);
  return ends;
}

std::vector<std::string> with_own(std::vector<std::string> environment, const Command& command) {
  for (const auto& [name, value] : command.environment) {
    std::erase_if(environment,
                  [&](const std::string& entry) { return entry.starts_with(name + "="); });
    environment.push_back(name + "=" + value);
  }
  return environment;
}

}  // namespace

Result<Outcome> run(const Policy& policy, const Command& command, const Caller& caller) {
  if (policy.mode == Mode::off)
    return fail("mode is off: on macOS nothing runs without a sandbox", 0, "start it yourself");
  if (command.arguments.empty()) return fail("there is no command");
  ScratchFolder scratch = TRY(ScratchFolder::make());
  MacPlan plan = TRY(resolve_for_mac(policy, caller, this_mac(policy, caller, scratch.path())));
  TRY(refuse_lost_promises(plan.policy, plan.losses));
  TRY(make_folders(plan.seatbelt));
  Ends in = TRY(make_ends(command.in_fd, Way::in));
  Ends out = TRY(make_ends(command.out_fd, Way::out));
  Ends err = TRY(make_ends(command.err_fd, Way::out));
  const pid_t pid = TRY(macos::spawn({.plan = &plan.seatbelt,
                                      .arguments = command.arguments,
                                      .environment = with_own(plan.environment, command),
                                      .folder = command.folder,
                                      .in_fd = in.guests.get(),
                                      .out_fd = out.guests.get(),
                                      .err_fd = err.guests.get()}));
  for (Ends* ends : {&in, &out, &err}) ends->guests.reset();
  Outcome outcome = TRY(macos::supervise({.pid = pid,
                                          .input = std::move(in.ours),
                                          .output = std::move(out.ours),
                                          .errors = std::move(err.ours),
                                          .text = command.input,
                                          .max_output = command.max_output,
                                          .timeout = policy.limits.timeout,
                                          .memory_mb = plan.seatbelt.watched_memory_mb,
                                          .cpu_secs = plan.seatbelt.watched_cpu_secs}));
  outcome.kept = std::move(plan.kept);
  outcome.losses = std::move(plan.losses);
  return outcome;
}

Result<std::string> explain(const Policy& policy, const Caller& caller) {
  const MacPlan plan = TRY(resolve_for_mac(policy, caller, this_mac(policy, caller, "SCRATCH")));
  std::string text;
  for (const Loss& loss : plan.losses)
    text.append(name(loss.promise))
        .append(loss.broken ? " (lost): " : " (less depth): ")
        .append(loss.what + "\n");
  return text + "\n" + plan.seatbelt.profile;
}

}  // namespace belljar
