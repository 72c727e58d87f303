#include "session/session.h"

#include <sys/stat.h>

#include "base/remove_tree.h"

namespace belljar::session {
namespace {

using std::chrono::milliseconds;

Status make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) < 0) return fail("make " + path, errno);
  return {};
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

// While a call runs or waits its session is not idle.
class Session::Busy {
 public:
  explicit Busy(Session& session) : session_(session) { ++session_.calls_; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  ~Busy() {
    --session_.calls_;
    session_.last_used_ = Clock::now();
  }

 private:
  Session& session_;
};

Session::Session(Common& common, std::string id, Policy policy, std::string folder)
    : common_(common),
      id_(std::move(id)),
      policy_(std::move(policy)),
      folder_(std::move(folder)),
      python_turns_(common.loop),
      shell_turns_(common.loop) {}

Result<std::shared_ptr<Session>> Session::make(Common& common, std::string id, Policy policy,
                                               std::string folder) {
  policy.limits.cpu_renews = true;
  policy.limits.timeout.reset();  // calls have their own
  policy.files.workdir = common.settings.workdir;
  std::shared_ptr<Session> session(
      new Session(common, std::move(id), std::move(policy), std::move(folder)));
  Files& files = session->policy_.files;
  TRY(make_folder(session->folder_));
  if (files.workdir.empty()) {
    files.workdir = session->folder_ + "/work";
    TRY(make_folder(files.workdir));
  }
  if (files.home == Home::temporary && files.home_dir.empty()) {
    files.home_dir = session->folder_ + "/home";
    TRY(make_folder(files.home_dir));
  }
  session->workdir_ = TRY(open_path(files.workdir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return session;
}

Session::~Session() {
  end();
  remove_tree(folder_);
}

void Session::end() {
  ended_ = true;
  if (python_ != nullptr) python_->kill();
  if (shell_ != nullptr) shell_->kill();
  if (jar_ != nullptr) jar_->end();
}

void Session::interrupt() {
  if (python_ != nullptr) python_->interrupt();
  if (shell_ != nullptr) shell_->interrupt();
}

// ---- starting -----------------------------------------------------------------

Status Session::start_jar() {
  if (ended_) return fail("the session has ended");
  if (jar_ != nullptr && jar_->alive()) return {};
  if (jar_ != nullptr) {
    const std::optional<Reason> why = jar_->ended_by();
    note("everything that ran in the session had been ended" +
         (why ? ": " + std::string(name(*why)) : "") + "; its files are still there");
  }
  python_.reset();
  shell_.reset();
  jar_ = TRY(AsyncJar::start(common_.loop, policy_, common_.caller, common_.host));
  return {};
}

Async<Status> Session::start_python() {
  if (Status started = start_jar(); !started) co_return started;
  if (python_ != nullptr && python_->alive()) co_return Status();
  if (python_ != nullptr) note("the interpreter is a fresh one: the last one had ended");
  python_.reset();
  Result<std::shared_ptr<PythonWorker>> worker =
      co_await PythonWorker::start(jar_, common_.settings);
  if (!worker) co_return std::unexpected(worker.error());
  python_ = std::move(*worker);
  co_return Status();
}

Async<Status> Session::start_shell() {
  if (Status started = start_jar(); !started) co_return started;
  if (shell_ != nullptr && shell_->alive()) co_return Status();
  if (shell_ != nullptr) note("the shell is a fresh one: the last one had ended");
  if (shell_ != nullptr) shell_->kill();
  shell_.reset();
  Result<std::shared_ptr<ShellWorker>> worker =
      co_await ShellWorker::start(jar_, common_.settings, shell_folder_);
  // The folder it was in last may be gone.
  if (!worker && !std::exchange(shell_folder_, {}).empty())
    worker = co_await ShellWorker::start(jar_, common_.settings, {});
  if (!worker) co_return std::unexpected(worker.error());
  shell_ = std::move(*worker);
  co_return Status();
}

// ---- calls --------------------------------------------------------------------

milliseconds Session::time_for(std::optional<milliseconds> asked, milliseconds usual,
                               CallReport& report) const {
  const milliseconds most = common_.settings.max_timeout;
  if (asked && *asked > most)
    report.notes.push_back("the time was limited to " + seconds(most) +
                           ", the most that is allowed");
  return std::min(asked.value_or(usual), most);
}

Async<Result<PythonResult>> Session::python(PythonCall call) {
  const std::shared_ptr<Session> keep = shared_from_this();
  const Busy busy(*this);
  const Turns::Turn turn = co_await python_turns_.take();
  const Status started = co_await start_python();
  if (!started) co_return std::unexpected(started.error());
  CallReport about_time;
  const milliseconds time = time_for(call.timeout, common_.settings.python_timeout, about_time);
  const std::shared_ptr<AsyncJar> jar = jar_;
  const std::shared_ptr<PythonWorker> worker = python_;
  // In a folder of its own only this session writes; what it did between calls is news.
  if (!common_.settings.workdir.empty()) files_ = take_snapshot(workdir_.get());
  jar->begin_call();
  PythonResult result = co_await worker->execute(call, time, common_.settings.grace);
  jar->end_call();
  result.notes.insert(result.notes.begin(), about_time.notes.begin(), about_time.notes.end());
  result.working_directory = jar->plan().layout.workdir;
  add_files(result, call.outputs);
  add_notes(result);
  // Its state is known to be lost, and said so: the next start is no news.
  if (result.state_lost && python_ == worker) python_.reset();
  co_return result;
}

Async<Result<ShellResult>> Session::shell(ShellCall call) {
  const std::shared_ptr<Session> keep = shared_from_this();
  const Busy busy(*this);
  const Turns::Turn turn = co_await shell_turns_.take();
  const Status started = co_await start_shell();
  if (!started) co_return std::unexpected(started.error());
  CallReport about_time;
  const milliseconds time = time_for(call.timeout, common_.settings.shell_timeout, about_time);
  const std::shared_ptr<AsyncJar> jar = jar_;
  const std::shared_ptr<ShellWorker> worker = shell_;
  if (!common_.settings.workdir.empty()) files_ = take_snapshot(workdir_.get());
  jar->begin_call();
  ShellResult result = co_await worker->run(call, time, common_.settings);
  jar->end_call();
  shell_folder_ = worker->folder();
  result.notes.insert(result.notes.begin(), about_time.notes.begin(), about_time.notes.end());
  add_files(result, call.outputs);
  add_notes(result);
  if (result.state_lost && shell_ == worker) shell_.reset();
  co_return result;
}

Async<Result<std::shared_ptr<Program>>> Session::spawn(ProgramCall call) {
  const std::shared_ptr<Session> keep = shared_from_this();
  const Busy busy(*this);
  const Status started = start_jar();
  if (!started) co_return std::unexpected(started.error());
  co_return co_await Program::start(jar_, std::move(call), common_.settings.max_output);
}

void Session::add_files(CallReport& report, const std::vector<std::string>& wanted) {
  const FileLimits limits{.one = common_.settings.max_file,
                          .total = common_.settings.max_file_total};
  Snapshot now = take_snapshot(workdir_.get());
  report.files = changed_files(workdir_.get(), files_, now, wanted, limits);
  report.more_files = now.more;
  files_ = std::move(now);
}

void Session::add_notes(CallReport& report) {
  std::vector<std::string> notes = std::exchange(notes_, {});
  report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
}

Async<Status> Session::reset() {
  const std::shared_ptr<Session> keep = shared_from_this();
  const Busy busy(*this);
  const Turns::Turn turn = co_await python_turns_.take();
  if (python_ != nullptr) python_->kill();
  python_.reset();
  co_return co_await start_python();
}

}  // namespace belljar::session
