#include "session/warm.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <csignal>

#include "base/passing.h"
#include "base/syscall.h"
#include "launcher/join.h"
#include "launcher/joiner_image.h"
#include "launcher/program.h"
#include "session/sources.h"
#include "session/unwritten.h"

namespace belljar::session {
namespace {

using launcher::Jar;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Matplotlib looks at every font of the system when it finds no cache of them.
constexpr milliseconds kReadyWithin = std::chrono::seconds(60);
constexpr milliseconds kJoinedWithin = std::chrono::seconds(10);
constexpr std::size_t kMaxMessage = 4096;

// Reads warm.py from standard input, which is the control socket, and runs it.
constexpr const char* kBoot = R"(import sys
del sys.path[:1]
import os
def part(fd, size):
    data = b""
    while len(data) < size:
        more = os.read(fd, size - len(data))
        if not more:
            os._exit(1)
        data += more
    return data
exec(compile(part(0, int.from_bytes(part(0, 4), "little")), "<belljar warm>", "exec"),
     {"__name__": "belljar_warm", "part": part})
)";

// Variables by which an interpreter finds its libraries.
constexpr std::string_view kAboutPython[] = {"PYTHON", "PYENV_", "VIRTUAL_ENV", "CONDA_"};

bool is_about_python(std::string_view name) {
  return std::ranges::any_of(kAboutPython,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// What of the caller's variables it starts with, and forks do not have: what depends on a
// session is theirs alone.
Environment environment_of_interpreter(const Environment& sessions) {
  Environment environment;
  environment.pass = {"PATH", "LANG", "LANGUAGE", "LC_*", "TZ"};
  for (std::string_view prefix : kAboutPython)
    if (sessions.everything) environment.pass.push_back(std::string(prefix) + "*");
  for (const std::string& name : sessions.pass)
    if (is_about_python(name)) environment.pass.push_back(name);
  for (const auto& [name, value] : sessions.set)
    if (is_about_python(name)) environment.set.emplace_back(name, value);
  environment.system_path_only = sessions.system_path_only;
  return environment;
}

}  // namespace

// What the interpreter may see: what every session may read, and nothing of one session's own.
// Its limits would be the forks' as well, which have their own.
Policy policy_of_interpreter(const Policy& sessions) {
  Policy policy;
  policy.profile = sessions.profile;
  policy.files.reads = sessions.files.reads;
  policy.files.toolchains = sessions.files.toolchains;
  policy.files.other_homes = sessions.files.other_homes;
  policy.files.hide_globs = sessions.files.hide_globs;
  policy.files.home_inside = sessions.files.home_inside;
  for (const Grant& grant : sessions.files.grants)
    if (grant.access == Access::read || grant.access == Access::hide)
      policy.files.grants.push_back(grant);
  // A fork could not leave a network namespace for the host's own.
  policy.network = sessions.network == Network::full ? Network::full : Network::none;
  policy.environment = environment_of_interpreter(sessions.environment);
  policy.syscalls = Syscalls::deny_list;
  // What it cannot do without is asked for by Warm::start: namespaces.
  policy.needs.fill(Need::best_effort);
  policy.set_need(Promise::limits, Need::unasked);
  return policy;
}

namespace {

template <class T>
bool contains_all(const std::vector<T>& all, const std::vector<T>& some) {
  return std::ranges::all_of(
      some, [&](const T& one) { return std::ranges::find(all, one) != all.end(); });
}

std::vector<std::string> paths_of(const Policy& policy, bool (*wanted)(Access)) {
  std::vector<std::string> paths;
  for (const Grant& grant : policy.files.grants)
    if (wanted(grant.access)) paths.push_back(grant.path);
  return paths;
}

bool is_readable_grant(Access access) { return access == Access::read || access == Access::write; }
bool is_hidden(Access access) { return access == Access::hide; }

struct SocketPair {
  Fd ours, theirs;
};

Result<SocketPair> make_sockets(int type) {
  int fds[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds) < 0) return fail("socketpair", errno);
  return SocketPair{Fd(fds[0]), Fd(fds[1])};
}

Status send_part(int socket_fd, std::string_view text) {
  const auto size = static_cast<std::uint32_t>(text.size());
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
  bytes += text;
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t n =
        retry([&] { return ::send(socket_fd, rest.data(), rest.size(), MSG_NOSIGNAL); });
    if (n < 0) return fail("send to the interpreter", errno);
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

std::string arguments_of_prepare(const std::vector<std::string>& preload,
                                 const std::string& display_source) {
  boost::json::array modules(preload.begin(), preload.end());
  boost::json::array arguments{std::move(modules)};
  if (!display_source.empty()) arguments.emplace_back(display_source);
  return boost::json::serialize(arguments);
}

// What is there to read, added to `text`. False: nothing will come any more.
bool read_some(int fd, std::string& text) {
  char bytes[kMaxMessage];
  const ssize_t n = retry([&] { return ::read(fd, bytes, sizeof bytes); });
  if (n > 0) text.append(bytes, static_cast<std::size_t>(n));
  return n > 0;
}

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// A list of texts.
Result<std::vector<std::string>> folders_in(const std::string& text) {
  boost::system::error_code bad;
  const boost::json::value list = boost::json::parse(text, bad);
  if (bad || !list.is_array()) return fail("read what the warm interpreter says", EPROTO);
  std::vector<std::string> folders;
  for (const boost::json::value& folder : list.get_array()) {
    if (!folder.is_string()) return fail("read what the warm interpreter says", EPROTO);
    folders.emplace_back(folder.get_string());
  }
  return folders;
}

// Waits until the interpreter has said that it is ready, or why it is not. Returns the folders that
// it loads modules from.
Result<std::vector<std::string>> wait_until_ready(Jar& jar, int control_fd, int errors_fd) {
  const auto end = steady_clock::now() + kReadyWithin;
  std::string said, errors;
  pollfd fds[3] = {{.fd = control_fd, .events = POLLIN, .revents = 0},
                   {.fd = errors_fd, .events = POLLIN, .revents = 0},
                   {.fd = jar.control_fd(), .events = POLLIN, .revents = 0}};
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now());
    if (left <= milliseconds::zero())
      return fail("the warm interpreter was not ready in time", ETIMEDOUT);
    if (retry([&] { return ::poll(fds, 3, static_cast<int>(left.count())); }) < 0)
      return fail("poll", errno);
    if (fds[1].revents != 0 && !read_some(errors_fd, errors)) fds[1].fd = -1;
    if (fds[2].revents != 0) {
      if (jar.has_ended()) return fail("the warm interpreter's jar has ended");
      const std::optional<launcher::Event> event = TRY(jar.next_event());
      if (event && event->kind == protocol::Kind::failed)
        return fail("execute the warm interpreter", static_cast<int>(event->value));
    }
    if (fds[0].revents == 0) continue;
    const bool more = read_some(control_fd, said);
    if (said.starts_with('R') && said.ends_with('\n')) return folders_in(said.substr(1));
    if (more) continue;
    if (said.starts_with('F')) return fail("the warm interpreter: " + said.substr(1));
    while (fds[1].fd >= 0 && read_some(errors_fd, errors)) continue;
    return fail("the warm interpreter ended: " + last_line(std::move(errors)));
  }
}

Status accept_plan(const Plan&) { return {}; }

bool has_hung_up(int fd) {
  pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
  return retry([&] { return ::poll(&ready, 1, 0); }) != 0;
}

}  // namespace

// ---- the interpreter ------------------------------------------------------------

Warm::Warm(launcher::Started started, Sources sources)
    : sources_(std::move(sources)),
      home_(std::make_shared<launcher::Started>(std::move(started))),
      beneath_(std::make_unique<launcher::Beneath>(
          launcher::Beneath{.init_pidfd = jar().init_pidfd(),
                            .user_namespace = plan().identity && plan().identity->user_namespace,
                            .owner = jar().uid(),
                            .above = home_})) {}

Result<Warm> Warm::start(const Policy& policy, const Caller& caller, Host& host, std::string python,
                         const std::vector<std::string>& preload, std::string worker_source,
                         const std::string& display_source) {
  if (policy.mode == Mode::off) return fail("without a sandbox there is no jar to join");
  Warm warm(TRY(launcher::start(policy_of_interpreter(policy), caller, host, nullptr, accept_plan,
                                {}, {.role = Role::warm})),
            {.python = std::move(python),
             .worker = std::move(worker_source),
             .arguments = arguments_of_prepare(preload, display_source)});
  if (!warm.plan().identity || !warm.plan().pid_namespace)
    return fail("this host has no namespaces that a warm interpreter's forks could join");
  TRY(warm.revive());
  return warm;
}

Status Warm::revive() {
  Jar& own = home_->jar;
  if (own.has_ended()) return fail("the warm interpreter's jar has ended");
  // Its forks are other sessions' workers, so nothing that a guest wrote may run in it.
  Unwritten unwritten;
  const std::string python = TRY(unwritten.interpreter(sources_.python, plan().environment));
  SocketPair control = TRY(make_sockets(SOCK_STREAM));
  refuse_descriptors(control.ours.get());  // it is sent some, and sends none
  Pipe errors = TRY(make_pipe());
  Fd null = TRY(open_path("/dev/null", O_WRONLY));
  const std::uint32_t id =
      TRY(own.spawn({.arguments = {python, "-s", "-c", kBoot},
                     .folder = "/",
                     .environment = {},
                     .stdio_fds = {control.theirs.get(), null.get(), errors.write.get()},
                     .leads = false}));
  control.theirs.reset();
  errors.write.reset();
  // Its end while we send is told better by what it says, or by init.
  Status sent = send_part(control.ours.get(), warm_source());
  if (sent) sent = send_part(control.ours.get(), sources_.worker);
  if (sent) sent = send_part(control.ours.get(), sources_.arguments);
  const Fd joiner = TRY(launcher::make_program("belljar-join", launcher::joiner_image()));
  const int fds[] = {joiner.get()};
  if (sent && !send_with_fds(control.ours.get(), "l", fds))
    sent = fail("send to the interpreter", errno);
  const Result<std::vector<std::string>> folders =
      wait_until_ready(own, control.ours.get(), errors.read.get());
  Status ready = folders ? Status() : std::unexpected(folders.error());
  for (std::size_t i = 0; ready && i < folders->size(); ++i)
    ready = unwritten.check_tree((*folders)[i]);
  if (ready && sent) {
    control_ = std::move(control.ours);
    return {};
  }
  (void)own.signal(id, SIGKILL);  // if it is still there; the jar may have ended too
  return ready ? sent : ready;
}

bool Warm::alive() const { return control_ && !has_hung_up(control_.get()); }

// The fork has in its memory what the interpreter could read, and where it is: so the jar's
// guest must be allowed both.
Status Warm::check_fits(const Plan& session_plan) const {
  const Policy& own = plan().policy;
  const Policy& sessions = session_plan.policy;
  const bool same =
      own.files.reads == sessions.files.reads &&
      own.files.toolchains == sessions.files.toolchains &&
      own.files.other_homes == sessions.files.other_homes &&
      contains_all(paths_of(sessions, is_readable_grant), paths_of(own, is_readable_grant)) &&
      contains_all(paths_of(own, is_hidden), paths_of(sessions, is_hidden)) &&
      contains_all(own.files.hide_globs, sessions.files.hide_globs);
  if (!same) return fail("the warm interpreter was started for sessions that may read other files");
  if (plan().net && !session_plan.net)
    return fail("the warm interpreter was started for sessions without the host's network");
  return {};
}

Result<Joining> Warm::begin_fork(Jar& session_jar, const Plan& session_plan, int control_fd,
                                 const std::array<int, 3>& stdio,
                                 const std::vector<std::string>& environment) {
  if (!alive()) return fail("the warm interpreter has ended");
  TRY(check_fits(session_plan));
  TRY(launcher::check_stdio(session_plan.policy, stdio));
  if (session_jar.uid()) launcher::let_guest_reopen(stdio);
  const launcher::JoinRequest request =
      TRY(launcher::join_request(session_plan, session_jar, environment));
  SocketPair status = TRY(make_sockets(SOCK_SEQPACKET));
  std::vector<int> fds{control_fd, stdio[0], stdio[1], stdio[2]};
  if (request.ruleset_fd >= 0) fds.push_back(request.ruleset_fd);
  // It waits in a socket of which only the fork reads.
  if (!send_with_fds(status.ours.get(), request.bytes, fds, MSG_DONTWAIT))
    return fail("send a request to join", errno);
  const int theirs[] = {status.theirs.get(), session_jar.init_pidfd()};
  const std::string_view call(reinterpret_cast<const char*>(&request.call), sizeof request.call);
  if (!send_with_fds(control_.get(), call, theirs, MSG_DONTWAIT))
    return fail("ask the warm interpreter to fork", errno);
  return Joining(std::move(status.ours), session_jar);
}

Result<Forked> Warm::fork_into(Jar& session_jar, const Plan& session_plan, int control_fd,
                               const std::array<int, 3>& stdio,
                               const std::vector<std::string>& environment) {
  Joining joining = TRY(begin_fork(session_jar, session_plan, control_fd, stdio, environment));
  const auto end = steady_clock::now() + kJoinedWithin;
  for (;;) {
    if (std::optional<Forked> forked = TRY(joining.step())) return std::move(*forked);
    const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now());
    if (left <= milliseconds::zero()) return fail("the fork did not join in time", ETIMEDOUT);
    pollfd ready{.fd = joining.fd(), .events = POLLIN, .revents = 0};
    if (retry([&] { return ::poll(&ready, 1, static_cast<int>(left.count())); }) < 0)
      return fail("poll", errno);
  }
}

}  // namespace belljar::session
