// WarmStarts: the warm interpreters of an engine, one for all sessions that can share it. They are
// started aside; until one is there its sessions start cold.
//
// There are few, and no owner can keep them from the others: when there is no room for another, the
// owner who has most gives up the one that was not used for longest. It ends with its last worker,
// and sessions that began with it start cold from then on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "belljar/session.h"
#include "session/aside.h"
#include "session/warm.h"

namespace belljar::session {

class WarmStarts {
 public:
  WarmStarts(Loop& loop, Aside& aside, const Caller& caller, const Host& host,
             const SessionSettings& settings);
  WarmStarts(const WarmStarts&) = delete;
  WarmStarts& operator=(const WarmStarts&) = delete;
  ~WarmStarts();

  // The one for sessions with this policy, if it is ready; else it is on its way. `owner`: of the
  // session; empty if it is everybody's.
  std::shared_ptr<Warm> find(const Policy& policy, const std::string& owner);
  // Why there is none for them, if that is known.
  std::string why_not(const Policy& policy) const;

 private:
  struct One;
  using All = std::vector<std::shared_ptr<One>>;
  All::const_iterator find_one(const Policy& policy) const;
  bool make_room(const std::string& owner);
  std::size_t count_of(const std::string& owner) const;
  void begin_start(const std::shared_ptr<One>& one);
  static Async<void> start(std::shared_ptr<One> one, WarmStarts& starts);

  Loop& loop_;
  Aside& aside_;
  const Caller& caller_;
  const Host& host_;
  const SessionSettings& settings_;
  All all_;  // the one that was used last is at the end
};

}  // namespace belljar::session
