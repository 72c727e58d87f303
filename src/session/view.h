// What a session's guest sees and may do, for those outside who act for it or describe it.
#pragma once

#include <boost/json.hpp>
#include <functional>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace belljar::session {

// A worker of a session.
enum class Worker { every, python, shell };

// A place of the host's that the guest sees. The longest that matches a path counts.
struct SessionRoot {
  std::string inside;
  std::string outside;
  bool writable = false;
  bool hidden = false;  // it is there so that the guest does not see it
  bool owned = false;   // the guest is its owner; else it has the rights of everybody there
};

struct SessionView {
  Policy policy;
  std::string workdir;  // inside
  std::vector<SessionRoot> roots;
  std::string home;                    // inside, as its shell has it
  std::vector<std::string> unreached;  // folders of its own, which are in no root
  boost::json::object plan;            // as `belljar explain --json` has it
};

SessionView view_of(const Plan& plan);

// Finds it out: for a session without a jar the globs of its policy are searched for, which
// takes as long as there are files. So not on the loop, but on any thread.
using Look = std::function<Result<SessionView>()>;
Look look_at(Policy policy, Host host, Caller caller);

}  // namespace belljar::session
