// RunningCalls: by whose name one call can be asked to stop, and nothing else that runs in its
// session: a person who looks at what an agent does stops only what he began himself.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/random.h"
#include "server/cancel.h"

namespace belljar::server {

class RunningCalls {
 public:
  // The call's name; remove() it when the call has ended.
  std::string add(const std::string& session, std::weak_ptr<Cancel> cancel) {
    std::string id = "r_" + random_hex(16);
    calls_[id] = {session, std::move(cancel)};
    return id;
  }
  void remove(const std::string& id) { calls_.erase(id); }

  // False: there is none of that name in the session.
  bool stop(const std::string& session, const std::string& id) {
    const auto found = calls_.find(id);
    if (found == calls_.end() || found->second.first != session) return false;
    const std::shared_ptr<Cancel> cancel = found->second.second.lock();
    if (cancel != nullptr) cancel->ask();
    return cancel != nullptr;
  }

 private:
  std::map<std::string, std::pair<std::string, std::weak_ptr<Cancel>>> calls_;
};

}  // namespace belljar::server
