#include "session/engine.h"

#include <algorithm>
#include <filesystem>

#include "base/descriptor_limit.h"
#include "base/random.h"
#include "base/remove_tree.h"
#include "plan/scratch.h"

namespace belljar::session {
namespace {

constexpr std::size_t kMaxId = 128;
constexpr std::size_t kMaxReaped = 10'000;  // remembered, so that their next call can say so
// For what guests use, and how often it is asked whether it is known.
constexpr std::chrono::milliseconds kMeasureTime{500};
constexpr std::chrono::milliseconds kMeasureLook{2};

}  // namespace

Status check_id(const std::string& whole) {
  const std::string_view id = std::string_view(whole).substr(0, whole.find('@'));
  auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == ':';
  };
  // No dot at the beginning: an id is part of addresses, where .. leads elsewhere.
  if (id.empty() || id.size() > kMaxId || id[0] == '.' || !std::ranges::all_of(id, allowed))
    return fail("this is no session id", 0,
                "up to 128 letters, digits and - _ . : and no dot at the beginning");
  return {};
}

std::string fresh_id() { return "s_" + random_hex(16); }

// Looks from time to time for sessions that nobody uses. It outlives the engine by the
// moment that the loop needs to wake it.
struct Engine::Reaper {
  Reaper(Loop& loop, Engine& its_engine) : timer(loop), engine(&its_engine) {}
  asio::steady_timer timer;
  Engine* engine;

  static Async<void> run(std::shared_ptr<Reaper> self) {
    while (self->engine != nullptr) {
      self->timer.expires_after(self->engine->common_->settings.reap_every);
      co_await self->timer.async_wait(kAwait);
      if (self->engine != nullptr) self->engine->reap();
    }
  }
};

Engine::Engine(Loop& loop, Policy policy, Caller caller, SessionSettings settings,
               std::string folder)
    : common_(new Common{.loop = loop,
                         .caller = std::move(caller),
                         .host = assume_host(),
                         .settings = std::move(settings),
                         .bound = {}}),
      policy_(std::move(policy)),
      folder_(std::move(folder)),
      reaper_(std::make_shared<Reaper>(loop, *this)) {}

Result<std::unique_ptr<Engine>> Engine::make(Loop& loop, Policy policy, Caller caller,
                                             SessionSettings settings, std::optional<Reach> bound) {
  if (policy.mode == Mode::off)
    return fail("sessions are not run without a sandbox", 0, "take --sandbox=off away");
  raise_descriptor_limit();  // a session takes some twenty
  std::string folder = TRY(make_scratch_folder());
  std::unique_ptr<Engine> engine(new Engine(loop, std::move(policy), std::move(caller),
                                            std::move(settings), std::move(folder)));
  begin(loop, Reaper::run(engine->reaper_));
  Common& common = *engine->common_;
  common.bound = std::move(bound);
  // An end does not wait for that: the next start goes on with it.
  const auto has_ended = [&common] {
    return common.removing_ends.load() != Clock::time_point::max();
  };
  common.removing.begin([has_ended] { remove_stale_scratch_folders(has_ended); },
                        "what others left");
  (void)common.warm.find(shared_by_sessions(engine->policy_, common.settings), {});  // on its way
  return engine;
}

Engine::~Engine() { (void)end(); }

std::optional<std::string> Engine::end(std::chrono::milliseconds removal) {
  const std::string folder = std::exchange(folder_, {});
  if (folder.empty()) return std::nullopt;
  common_->removing_ends = Clock::now() + removal;
  reaper_->engine = nullptr;
  reaper_->timer.cancel();
  for (auto& [id, session] : sessions_) session->end();
  sessions_.clear();
  // Calls that the loop will not go on with may hold sessions longer; their files go now.
  for (Aside* aside : {&common_->aside, &common_->launching, &common_->starting, &common_->ending,
                       &common_->removing})
    aside->finish();
  remove_tree(folder, common_->gives_up_removing());
  std::error_code ignored;  // then it is not there
  return std::filesystem::exists(folder, ignored) ? std::optional(folder) : std::nullopt;
}

// ---- sessions -----------------------------------------------------------------

Status Engine::check_room() {
  const SessionSettings& settings = common_->settings;
  if (sessions_.size() >= settings.max_sessions)
    return fail("there are " + std::to_string(sessions_.size()) + " sessions, the most allowed", 0,
                "close one, or raise max_sessions in [session]");
  if (!settings.max_total_memory_mb) return {};
  std::uint64_t used_kb = 0;
  for (auto& [id, session] : sessions_) used_kb += session->memory_kb();
  if (used_kb / 1024 >= *settings.max_total_memory_mb)
    return fail(
        "the sessions use " + std::to_string(used_kb / 1024) + " MB together, the most allowed", 0,
        "close one, or raise max_total_memory_mb in [session]");
  return {};
}

Result<std::shared_ptr<Session>> Engine::make_session(const std::string& id, Policy policy) {
  TRY(check_id(id));
  if (folder_.empty()) return fail("the sessions have ended");
  TRY(check_room());
  std::shared_ptr<Session> session =
      TRY(Session::make(common_, id, std::move(policy), folder_ + "/" + std::to_string(++made_)));
  session->number = made_;
  if (reaped_.erase(id) > 0)
    session->note("the session had been idle and was ended; this is a fresh one");
  sessions_.emplace(id, session);
  return session;
}

Result<std::string> Engine::open(const std::string& id, std::optional<Policy> policy) {
  std::string name = id.empty() ? fresh_id() : id;
  if (sessions_.contains(name)) return fail("there is a session " + name + " already");
  TRY(make_session(name, std::move(policy).value_or(policy_)));
  return name;
}

Async<Result<std::shared_ptr<Session>>> Engine::find_or_open(std::string id) {
  auto found = sessions_.find(id);
  if (found != sessions_.end()) co_return found->second;
  if (common_->settings.max_total_memory_mb) {
    const std::shared_ptr<Reaper> reaper = reaper_;
    co_await measure();
    if (reaper->engine == nullptr) co_return fail("the sessions have ended");
    found = sessions_.find(id);
    if (found != sessions_.end()) co_return found->second;
  }
  co_return make_session(id, policy_);
}

Result<Engine::Sessions::iterator> Engine::find(const std::string& id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return fail("there is no such session");
  return found;
}

std::uint64_t Engine::number(const std::string& id) const {
  const auto found = sessions_.find(id);
  return found != sessions_.end() ? found->second->number : 0;
}

std::shared_ptr<void>* Engine::kept_of(const std::string& id) {
  const auto found = sessions_.find(id);
  return found != sessions_.end() ? &found->second->kept : nullptr;
}

std::optional<SessionInfo> Engine::info(const std::string& id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return std::nullopt;
  Session& session = *found->second;
  const auto idle = session.busy() ? Clock::duration{} : Clock::now() - session.last_used();
  return SessionInfo{.id = id,
                     .busy = session.busy(),
                     .idle = std::chrono::duration_cast<std::chrono::milliseconds>(idle),
                     .memory_kb = session.memory_kb()};
}

std::vector<SessionInfo> Engine::list(const Wanted& wanted) {
  std::vector<SessionInfo> infos;
  for (const auto& [id, session] : sessions_)
    if (!wanted || wanted(id)) infos.push_back(*info(id));
  return infos;
}

// The engine may go meanwhile.
Async<void> Engine::measure(Wanted wanted) {
  std::vector<std::shared_ptr<Session>> asked;
  for (const auto& [id, session] : sessions_)
    if (!wanted || wanted(id)) asked.push_back(session);
  for (const auto& session : asked) (void)session->memory_kb();
  asio::steady_timer look(common_->loop);
  const Clock::time_point end = Clock::now() + kMeasureTime;
  while (Clock::now() < end && std::ranges::any_of(asked, &Session::is_measuring)) {
    look.expires_after(kMeasureLook);
    co_await look.async_wait(kAwait);
  }
}

Status Engine::close(const std::string& id) {
  const auto found = TRY(find(id));
  const std::shared_ptr<Session> session = found->second;
  sessions_.erase(found);
  session->end();
  return {};
}

Status Engine::interrupt(const std::string& id, Worker which) {
  TRY(find(id))->second->interrupt(which);
  return {};
}

Result<Look> Engine::look(const std::string& id) {
  if (!id.empty()) return TRY(find(id))->second->look();
  return look_at(shared_by_sessions(policy_, common_->settings), common_->host, common_->caller);
}

Async<Result<SessionView>> Engine::view(std::string id, std::string owner) {
  Result<Look> look = this->look(id);
  if (!look) co_return std::unexpected(look.error());
  co_return co_await common_->aside.run(common_->loop, std::move(owner), std::move(*look));
}

// ---- calls --------------------------------------------------------------------

Async<Result<PythonResult>> Engine::python(std::string id, PythonCall call) {
  Result<std::shared_ptr<Session>> session = co_await find_or_open(std::move(id));
  if (!session) co_return std::unexpected(session.error());
  co_return co_await (*session)->python(std::move(call));
}

Async<Result<ShellResult>> Engine::shell(std::string id, ShellCall call) {
  Result<std::shared_ptr<Session>> session = co_await find_or_open(std::move(id));
  if (!session) co_return std::unexpected(session.error());
  co_return co_await (*session)->shell(std::move(call));
}

Async<Result<std::shared_ptr<Program>>> Engine::spawn(std::string id, ProgramCall call) {
  Result<std::shared_ptr<Session>> session = co_await find_or_open(std::move(id));
  if (!session) co_return std::unexpected(session.error());
  co_return co_await (*session)->spawn(std::move(call));
}

Async<Result<ProgramEnd>> Engine::run(std::string id, ProgramCall call,
                                      std::optional<std::chrono::milliseconds> time) {
  Result<std::shared_ptr<Session>> session = co_await find_or_open(std::move(id));
  if (!session) co_return std::unexpected(session.error());
  co_return co_await (*session)->run(std::move(call), time);
}

Async<Status> Engine::reset(std::string id) {
  Result<std::shared_ptr<Session>> session = co_await find_or_open(std::move(id));
  if (!session) co_return std::unexpected(session.error());
  co_return co_await (*session)->reset();
}

// ---- reaping ------------------------------------------------------------------

void Engine::remember_reaped(const std::string& id) {
  if (reaped_.size() == kMaxReaped) reaped_.erase(reaped_.begin());
  reaped_.insert(id);
}

void Engine::reap() {
  std::erase_if(sessions_, [&](const auto& entry) {
    const Session& session = *entry.second;
    if (session.busy() || Clock::now() - session.last_used() < common_->settings.idle) return false;
    remember_reaped(entry.first);
    return true;
  });
}

}  // namespace belljar::session
