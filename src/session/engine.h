// Engine: the sessions of a program, on one event loop. A session is made by the first
// call that names it. Everything ends with the engine: guests at once, and temporary folders
// too, unless guests have made them so large that it takes too long. What is left of those,
// or by a process that was killed, the next engine removes, beside its work.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "session/session.h"

namespace belljar::session {

// For removing what guests left, at the end.
inline constexpr std::chrono::seconds kRemovalTime{10};

class Engine {
 public:
  using Wanted = std::function<bool(const std::string& id)>;

  static Result<std::unique_ptr<Engine>> make(Loop& loop, Policy policy, Caller caller,
                                              SessionSettings settings,
                                              std::optional<Reach> bound = {});
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  // As its destruction does, in that time. The folder that was not removed whole, if so.
  std::optional<std::string> end(std::chrono::milliseconds removal = kRemovalTime);

  // Without an id, one is made up. Returns it.
  Result<std::string> open(const std::string& id = {}, std::optional<Policy> policy = {});
  Async<Result<PythonResult>> python(std::string id, PythonCall call);
  Async<Result<ShellResult>> shell(std::string id, ShellCall call);
  Async<Result<std::shared_ptr<Program>>> spawn(std::string id, ProgramCall call);
  Async<Result<ProgramEnd>> run(std::string id, ProgramCall call,
                                std::optional<std::chrono::milliseconds> time);
  Async<Status> reset(std::string id);
  Status interrupt(const std::string& id, Worker which = Worker::every);
  // What its guest sees. Without an id: of a session that would be made now.
  Result<Look> look(const std::string& id = {});
  // Runs it beside the loop, for who has nothing else to do there.
  Async<Result<SessionView>> view(std::string id, std::string owner);
  Status close(const std::string& id);
  // What is known of one session, or of all that `wanted` says.
  std::optional<SessionInfo> info(const std::string& id);
  std::vector<SessionInfo> list(const Wanted& wanted = {});
  // Before that: what their guests use is summed up beside the loop. A guest can make it long, and
  // then this ends before it is known.
  Async<void> measure(Wanted wanted = {});
  std::size_t count() const { return sessions_.size(); }
  bool has(const std::string& id) const { return sessions_.contains(id); }
  // A place for what a caller keeps with the session, gone when it goes; nullptr if it has gone.
  std::shared_ptr<void>* kept_of(const std::string& id);
  // Which of all sessions that had this id it is; 0: there is none now.
  std::uint64_t number(const std::string& id) const;
  Aside& aside() { return common_->aside; }
  std::string owner_of(const std::string& id) const { return common_->owner_of(id); }
  // Asked on the loop. Until it is told, all sessions are one's.
  void know_owners(std::function<std::string(const std::string& id)> owner_of) {
    common_->owner_of = std::move(owner_of);
  }

 private:
  struct Reaper;
  using Sessions = std::map<std::string, std::shared_ptr<Session>>;

  Engine(Loop& loop, Policy policy, Caller caller, SessionSettings settings, std::string folder);
  Async<Result<std::shared_ptr<Session>>> find_or_open(std::string id);
  Result<std::shared_ptr<Session>> make_session(const std::string& id, Policy policy);
  Result<Sessions::iterator> find(const std::string& id);
  Status check_room();
  void remember_reaped(const std::string& id);
  void reap();

  std::shared_ptr<Common> common_;  // sessions that end later need it
  Policy policy_;
  std::string folder_;  // empty: it has ended
  Sessions sessions_;
  std::set<std::string> reaped_;
  std::uint64_t made_ = 0;
  std::shared_ptr<Reaper> reaper_;
};

// Whether a session may be called so. What follows an @ says whose it is, where several have
// sessions, and is not looked at.
Status check_id(const std::string& id);
// One that nobody guesses.
std::string fresh_id();

}  // namespace belljar::session
