// WarmStarts: the warm interpreters of an engine, one for each policy that sessions have.
// They are started aside; until one is there its sessions start cold.
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

  // The one for sessions with this policy, if it is ready; else it is on its way.
  std::shared_ptr<Warm> find(const Policy& policy);
  // Why there is none for them, if that is known.
  std::string why_not(const Policy& policy) const;

 private:
  struct One;
  void begin_start(const std::shared_ptr<One>& one);
  static Async<void> start(std::shared_ptr<One> one, WarmStarts& starts);

  Loop& loop_;
  Aside& aside_;
  const Caller& caller_;
  const Host& host_;
  const SessionSettings& settings_;
  std::vector<std::shared_ptr<One>> all_;
};

}  // namespace belljar::session
