#include "session/session.h"

#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "base/remove_tree.h"
#include "base/utf8.h"
#include "plan/bound.h"
#include "session/shown.h"

namespace belljar::session {
namespace {

using std::chrono::milliseconds;

// A snapshot of so many names takes no longer than going to another thread and back.
constexpr std::size_t kQuick = 500;
// A fork joins a jar within some milliseconds, if the machine is not busy.
constexpr milliseconds kLeastJoinTime{2'000};
// Of code, or of commands together. What a person or a model writes is far smaller.
constexpr std::size_t kMaxRequest = 16 << 20;

Status check(const PythonCall& call) {
  if (call.code.size() > kMaxRequest) return fail("the code is larger than 16 MiB");
  if (!is_utf8(call.code)) return fail("the code is not UTF-8");
  return {};
}

Status check(const ShellCall& call) {
  std::size_t size = 0;
  for (const std::string& command : call.commands) {
    size += command.size();
    if (command.find('\0') != command.npos) return fail("a command holds a NUL byte");
  }
  if (size > kMaxRequest) return fail("the commands are larger than 16 MiB");
  return {};
}

Status make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) < 0) return fail("make " + path, errno);
  return {};
}

// Where the guest sees the host's own /tmp, it comes to its folders by their path, and a jar of
// root's as a user to whom the folders above do not belong. They can be passed then, not listed.
Status let_pass(const std::string& folder, const Files& files) {
  if (::geteuid() != 0 || files.reads != Reads::everything || files.private_tmp) return {};
  for (const std::string& path : {folder.substr(0, folder.rfind('/')), folder})
    if (::chmod(path.c_str(), 0711) < 0) return fail("chmod " + path, errno);
  return {};
}

template <class Answer>
Answer not_begun() {
  Answer answer;
  tell_not_begun(answer);
  return answer;
}

// Who works on the whole home has it in the place of one of the session's own.
bool takes_place_of_home(const Files& files, const Caller& caller) {
  std::error_code ignored;  // what cannot be resolved is compared as it stands
  return files.home_inside.empty() && std::filesystem::weakly_canonical(files.workdir, ignored) ==
                                          std::filesystem::weakly_canonical(caller.home, ignored);
}

std::string seconds(milliseconds time) {
  std::string text = std::to_string(time.count() / 1000);
  if (time.count() % 1000 != 0) {
    std::string rest = std::to_string(time.count() % 1000);
    text += "." + std::string(3 - rest.size(), '0') + rest;
  }
  return text + " s";
}

}  // namespace

Session::Session(std::shared_ptr<Common> common, std::string id, Policy policy, std::string folder)
    : common_(std::move(common)),
      id_(std::move(id)),
      policy_(std::move(policy)),
      folder_(std::move(folder)),
      files_turns_(common_->loop),
      jar_turns_(common_->loop),
      python_turns_(common_->loop),
      shell_turns_(common_->loop) {}

Policy shared_by_sessions(Policy policy, const SessionSettings& settings) {
  policy.limits.cpu_renews = true;
  policy.limits.timeout.reset();  // calls have their own
  policy.files.workdir = settings.workdir;
  policy.files.start_in.clear();  // a command's; workers start in the workdir
  return policy;
}

Result<std::shared_ptr<Session>> Session::make(std::shared_ptr<Common> common, std::string id,
                                               Policy policy, std::string folder) {
  const std::optional<milliseconds> longest_call = policy.limits.timeout;
  policy = shared_by_sessions(std::move(policy), common->settings);
  std::shared_ptr<Session> session(
      new Session(std::move(common), std::move(id), std::move(policy), std::move(folder)));
  session->longest_call_ = longest_call;
  session->plain_policy_ = session->policy_;
  forget_shown(session->plain_policy_.files);
  Files& files = session->policy_.files;
  TRY(make_folder(session->folder_));
  TRY(let_pass(session->folder_, files));
  if (files.workdir.empty()) {
    files.workdir = session->folder_ + "/work";
    TRY(make_folder(files.workdir));
  }
  if (files.home == Home::temporary && files.home_dir.empty() &&
      !takes_place_of_home(files, session->common_->caller)) {
    files.home_dir = session->folder_ + "/home";
    TRY(make_folder(files.home_dir));
  }
  session->workdir_ = TRY(open_path(files.workdir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  TRY(make_shown_folders(session->workdir_.get(), files));
  return session;
}

Session::~Session() {
  end();
  std::function<void()> wait = [] {};
  if (jar_ != nullptr) wait = jar_->wait_for_the_rest();
  common_->removing.begin([folder = std::move(folder_), wait = std::move(wait),
                           gives_up = common_->gives_up_removing()] {
    wait();
    remove_tree(folder, gives_up);
  });
}

void Session::end() {
  ended_ = true;
  if (python_ != nullptr) python_->kill();
  if (shell_ != nullptr) shell_->kill();
  for (const auto& shell : one_shots_) shell->kill();
  if (jar_ != nullptr) jar_->end();
}

void Session::interrupt(Worker which) {
  if (which != Worker::shell) {
    ++python_interrupts_;
    if (python_ != nullptr) python_->interrupt();
  }
  if (which == Worker::every) ++interrupts_;
  if (which == Worker::every)
    for (const auto& program : programs_) interrupt(program);
  if (which == Worker::python) return;
  ++shell_interrupts_;
  if (shell_ != nullptr) shell_->interrupt();
  for (const auto& shell : one_shots_) shell->interrupt();
}

Look Session::look() const {
  if (jar_ != nullptr) return [plan = jar_->shared_plan()] { return view_of(*plan); };
  return look_at(policy_, common_->host, common_->caller);
}

// ---- starting -----------------------------------------------------------------

// Beside the loop, and by one at a time.
Async<Status> Session::start_jar() {
  const Turns::Turn turn = co_await jar_turns_.take();
  if (ended_) co_return Status(fail("the session has ended"));
  // The guest may have shut itself out of its own folder. In one that is not ours that is
  // the owner's affair.
  if (common_->settings.workdir.empty()) (void)::fchmod(workdir_.get(), 0700);
  if (jar_ != nullptr && jar_->alive()) co_return Status();
  if (jar_ != nullptr) {
    const std::optional<Reason> why = jar_->ended_by();
    note("everything that ran in the session had been ended" +
         (why ? ": " + std::string(name(*why)) : "") + "; its files are still there");
  }
  python_.reset();
  shell_.reset();
  warm_ = common_->warm.find(plain_policy_, common_->owner_of(id_));
  if (warm_ != nullptr) {
    const Status joinable = co_await launch(warm_);
    if (joinable || ended_) co_return joinable;
    warm_ = nullptr;
  }
  co_return co_await launch(nullptr);
}

// `warm`: which it shall be possible to join it from. Works on copies: the engine may have gone
// before it is done.
Async<Status> Session::launch(std::shared_ptr<Warm> warm) {
  struct Launched {
    Host host;
    Result<launcher::Started> started;
  };
  auto work = [policy = policy_, caller = common_->caller, host = common_->host,
               bound = common_->bound, folder = folder_, warm = std::move(warm)]() mutable {
    const launcher::Origin origin = warm != nullptr ? warm->origin() : launcher::Origin{};
    // A guest of an earlier session may have changed where a project's paths lead.
    auto agrees = [&](const Plan& plan) {
      return bound ? check_bound(plan, *bound, folder) : Status();
    };
    Result<launcher::Started> started =
        launcher::start(policy, caller, host, nullptr, agrees, {}, origin);
    return Launched{std::move(host), std::move(started)};
  };
  std::string owner = common_->owner_of(id_);
  Launched launched =
      co_await common_->launching.run(common_->loop, std::move(owner), std::move(work));
  if (launched.host.measured) common_->host = std::move(launched.host);
  if (!launched.started) co_return std::unexpected(launched.started.error());
  Result<std::shared_ptr<AsyncJar>> jar =
      AsyncJar::make(common_->loop, {common_->watching, common_->ending, common_->owner_of(id_)},
                     std::move(*launched.started));
  if (!jar) co_return std::unexpected(jar.error());
  jar_ = std::move(*jar);
  sight_ = Sight(jar_->plan().layout, workdir_.get(), jar_->uid());
  if (!ended_) co_return Status();
  jar_->end();  // it was closed meanwhile
  co_return Status(fail("the session has ended"));
}

// `time`: of the call that it is started for.
Async<Status> Session::start_python(milliseconds time) {
  const Status started = co_await start_jar();
  if (!started) co_return started;
  if (python_ != nullptr && python_->alive()) co_return Status();
  if (python_ != nullptr) note("the interpreter is a fresh one: the last one had ended");
  python_.reset();
  const Patience patience{
      .until = Clock::now() + std::max(time, kLeastJoinTime),
      .given_up = [this, before = python_interrupts_] { return python_interrupts_ != before; }};
  Result<std::shared_ptr<PythonWorker>> worker =
      co_await PythonWorker::start(jar_, common_->settings, common_->beside(id_), warm_, patience);
  if (!worker) co_return std::unexpected(worker.error());
  python_ = std::move(*worker);
  python_is_new_ = true;
  if (!python_->why_cold().empty()) note("it was started cold: " + python_->why_cold());
  co_return Status();
}

Async<Status> Session::start_shell() {
  const Status started = co_await start_jar();
  if (!started) co_return started;
  if (shell_ != nullptr && shell_->alive()) co_return Status();
  if (shell_ != nullptr) note("the shell is a fresh one: the last one had ended");
  if (shell_ != nullptr) shell_->kill();
  shell_.reset();
  Result<std::shared_ptr<ShellWorker>> worker =
      co_await ShellWorker::start(jar_, common_->settings, common_->beside(id_), shell_folder_);
  // The folder it was in last may be gone.
  if (!worker && !std::exchange(shell_folder_, {}).empty() && jar_->alive())
    worker = co_await ShellWorker::start(jar_, common_->settings, common_->beside(id_), {});
  if (!worker) co_return std::unexpected(worker.error());
  shell_ = std::move(*worker);
  co_return Status();
}

// The shell that lasts, or one for this call.
Async<Result<std::shared_ptr<ShellWorker>>> Session::shell_for(const ShellCall& call) {
  if (!call.one_shot) {
    const Status started = co_await start_shell();
    if (!started) co_return std::unexpected(started.error());
    co_return shell_;
  }
  const Status started = co_await start_jar();
  if (!started) co_return std::unexpected(started.error());
  co_return co_await ShellWorker::start(jar_, common_->settings, common_->beside(id_), {});
}

// ---- calls --------------------------------------------------------------------

milliseconds Session::time_for(std::optional<milliseconds> asked, milliseconds usual,
                               CallReport& report) const {
  milliseconds most = common_->settings.max_timeout;
  if (longest_call_) most = std::min(most, *longest_call_);
  if (asked && *asked > most)
    report.notes.push_back("the time was limited to " + seconds(most) +
                           ", the most that is allowed");
  return std::min(asked.value_or(usual), most);
}

Result<std::shared_ptr<OutputFile>> Session::add_output_file(const std::optional<std::string>& name,
                                                             OnOutput& listener) const {
  if (!name) return std::shared_ptr<OutputFile>();
  std::shared_ptr<OutputFile> file = TRY(OutputFile::make(workdir_.get(), policy_, *name));
  listener = [file, hears = std::move(listener)](OutputStream stream, std::string_view bytes) {
    file->append(bytes);
    if (hears) hears(stream, bytes);
  };
  return file;
}

Async<Result<PythonResult>> Session::python(PythonCall call) {
  const std::shared_ptr<Session> keep = shared_from_this();
  const Busy busy(*this);
  const Beside beside = common_->beside(id_);
  const Status good = co_await beside.run(call.code.size(), [&call] { return check(call); });
  if (!good) co_return std::unexpected(good.error());
  const Turns::Turn turn = co_await python_turns_.take();
  const std::uint64_t interrupts = python_interrupts_;
  CallReport about_time;
  const milliseconds time = time_for(call.timeout, common_->settings.python_timeout, about_time);
  const Status started = co_await start_python(time);
  if (!started && python_interrupts_ != interrupts && !ended_) co_return not_begun<PythonResult>();
  if (!started) co_return std::unexpected(started.error());
  const std::shared_ptr<AsyncJar> jar = jar_;
  const std::shared_ptr<PythonWorker> worker = python_;
  Result<std::shared_ptr<OutputFile>> file = add_output_file(call.output_file, call.on_output);
  if (!file) co_return std::unexpected(file.error());
  co_await note_files_before();
  PythonResult result;
  if (python_interrupts_ == interrupts) {
    jar->begin_call();
    result = co_await worker->execute(call, time, common_->settings.grace);
    jar->end_call();
  } else {
    tell_not_begun(result);
  }
  result.notes.insert(result.notes.begin(), about_time.notes.begin(), about_time.notes.end());
  result.working_directory = jar->plan().layout.workdir;
  if (std::exchange(python_is_new_, false)) result.started = worker->is_warm() ? "warm" : "cold";
  std::string said;
  if (result.exception) said = result.exception->type + "\n" + result.exception->traceback;
  co_await complete(result, *jar, std::move(said), std::move(call.outputs), std::move(*file));
  // Its state is known to be lost, and said so: the next start is no news.
  if (result.state_lost && python_ == worker) python_.reset();
  co_return result;
}

Async<Result<ShellResult>> Session::shell(ShellCall call) {
  const std::shared_ptr<Session> keep = shared_from_this();
  const Busy busy(*this);
  if (Status good = check(call); !good) co_return std::unexpected(good.error());
  // One that has a shell of its own waits for nobody.
  Turns own_turns(common_->loop);
  Turns& turns = call.one_shot ? own_turns : shell_turns_;
  const Turns::Turn turn = co_await turns.take();
  const std::uint64_t interrupts = shell_interrupts_;
  const Result<std::shared_ptr<ShellWorker>> started = co_await shell_for(call);
  if (!started) co_return std::unexpected(started.error());
  const std::shared_ptr<AsyncJar> jar = jar_;
  const std::shared_ptr<ShellWorker>& worker = *started;
  Result<std::shared_ptr<OutputFile>> file = add_output_file(call.output_file, call.on_output);
  if (!file && call.one_shot) worker->kill();
  if (!file) co_return std::unexpected(file.error());
  co_await note_files_before();
  CallReport about_time;
  const milliseconds time = time_for(call.timeout, common_->settings.shell_timeout, about_time);
  if (call.one_shot) one_shots_.insert(worker);
  ShellResult result;
  if (shell_interrupts_ == interrupts) {
    jar->begin_call();
    result = co_await worker->run(call, time, common_->settings);
    jar->end_call();
  } else {
    tell_not_begun(result);
  }
  one_shots_.erase(worker);
  result.notes.insert(result.notes.begin(), about_time.notes.begin(), about_time.notes.end());
  std::string said = result.exit_code != 0 ? result.err : std::string();
  for (const RunCommand& command : result.commands)
    if (command.exit_code == 128 + SIGXFSZ) said += "File size limit exceeded";
  co_await complete(result, *jar, std::move(said), std::move(call.outputs), std::move(*file));
  if (call.one_shot) {
    worker->kill();
    result.state_lost = false;  // there was none to lose
    co_return result;
  }
  shell_folder_ = worker->folder();
  if (result.state_lost && shell_ == worker) shell_.reset();
  co_return result;
}

// What every call says in the end.
Async<void> Session::complete(CallReport& report, const AsyncJar& jar, std::string said,
                              std::vector<std::string> wanted, std::shared_ptr<OutputFile> file) {
  tell_felt_limits(report, jar, said);
  if (!told_of_network_) {
    std::string note = about_network(jar.plan().policy, said);
    told_of_network_ = !note.empty();
    if (told_of_network_) report.notes.push_back(std::move(note));
  }
  if (file != nullptr && file->left_out() > 0)
    report.notes.push_back(std::to_string(file->left_out()) +
                           " bytes did not fit into the output_file");
  if (ended_) report.notes.emplace_back("the session was closed");
  co_await add_files(report, std::move(wanted));
  add_notes(report);
}

// ---- files --------------------------------------------------------------------

// In a folder of its own only this session writes, and what it did between calls is news.
// In a shared one it is not: what counts begins with the call.
Async<void> Session::note_files_before() {
  if (common_->settings.workdir.empty()) co_return;
  const Turns::Turn turn = co_await files_turns_.take();
  const int fd = workdir_.get();
  files_ = take_snapshot(fd, sight_, kQuick);
  if (!files_.more) co_return;
  auto look = [fd, sight = sight_] { return take_snapshot(fd, sight); };
  std::string owner = common_->owner_of(id_);
  files_ = co_await common_->aside.run(common_->loop, std::move(owner), look);
}

Async<void> Session::add_files(CallReport& report, std::vector<std::string> wanted) {
  const Turns::Turn turn = co_await files_turns_.take();
  const FileLimits limits{.one = common_->settings.max_file,
                          .total = common_->settings.max_file_total};
  // Files are asked for by the name that the guest has for them, too.
  const std::string prefix = jar_->plan().layout.workdir + "/";
  for (std::string& name : wanted)
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  const int fd = workdir_.get();
  Changes changes;
  Snapshot now = take_snapshot(fd, sight_, kQuick);
  if (!now.more && wanted.empty() && changed_bytes(files_, now) <= Beside::kLittle) {
    changes = changed_files(fd, sight_, files_, now, wanted, limits);
    files_ = std::move(now);
  } else {
    auto look = [fd, sight = sight_, before = std::move(files_), wanted = std::move(wanted),
                 limits] {
      Snapshot all = take_snapshot(fd, sight);
      Changes found = changed_files(fd, sight, before, all, wanted, limits);
      return std::make_pair(std::move(all), std::move(found));
    };
    std::string owner = common_->owner_of(id_);
    auto looked = co_await common_->aside.run(common_->loop, std::move(owner), std::move(look));
    files_ = std::move(looked.first);
    changes = std::move(looked.second);
  }
  report.files = std::move(changes.files);
  report.more_files = changes.more;
  for (const std::string& name : changes.missing)
    report.notes.push_back("outputs: there is no file " + repair_utf8(name) + " in the workdir");
}

void Session::add_notes(CallReport& report) {
  std::vector<std::string> notes = std::exchange(notes_, {});
  report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
}

Async<Status> Session::reset() {
  const std::shared_ptr<Session> keep = shared_from_this();
  const Busy busy(*this);
  const Turns::Turn turn = co_await python_turns_.take();
  if (python_ != nullptr) python_->retire();
  python_.reset();
  co_return co_await start_python(common_->settings.python_timeout);
}

}  // namespace belljar::session
