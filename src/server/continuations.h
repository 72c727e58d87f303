// Continuations: calls that go on after their answer was due. Who asked is told a number,
// and asks again with it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/loop.h"
#include "server/dispatch.h"

namespace belljar::server {

inline constexpr std::size_t kMaxContinuations = 16;  // of one session
inline constexpr std::size_t kMaxSoFar = 4096;        // bytes of output shown meanwhile

class Continuations {
 public:
  explicit Continuations(Loop& loop) : loop_(loop) {}

  struct Job {
    explicit Job(Loop& its_loop) : loop(its_loop) {}
    Loop& loop;
    std::uint64_t number = 0;
    std::string id;
    std::string tool;
    std::string so_far;    // the end of what it has written
    std::string approval;  // which one it asked for, if it did
    std::optional<ToolAnswer> answer;
    std::vector<std::weak_ptr<Signal>> waiting;  // several may ask for one
    void hear(std::string_view bytes);
    void finish(ToolAnswer with);
  };

  // Of those that nobody has asked for again the oldest makes room. nullptr: too many run.
  std::shared_ptr<Job> add(const std::string& session, const std::string& tool);
  std::shared_ptr<Job> find(const std::string& session, const std::string& id) const;
  void remove(const std::string& session, const std::string& id);
  void forget(const std::string& session) { jobs_.erase(session); }

  // Until it is done or that time has come.
  static Async<bool> wait(std::shared_ptr<Job> job, Clock::time_point until);

 private:
  Loop& loop_;
  std::map<std::string, std::map<std::string, std::shared_ptr<Job>>> jobs_;
  std::uint64_t last_ = 0;
};

}  // namespace belljar::server
