#include "session/warm_starts.h"

#include <algorithm>

#include "session/sources.h"
#include "session/unwritten.h"

namespace belljar::session {
namespace {

// Each is an interpreter with everything imported.
constexpr std::size_t kMost = 4;
// Of one owner, so that there is always room for another's.
constexpr std::size_t kMostOfOne = 2;

}  // namespace

struct WarmStarts::One {
  Policy policy;      // of the interpreter
  std::string owner;  // whose session needed it first; empty once others use it too
  std::shared_ptr<Warm> warm;
  bool starting = false;
  std::string why_not;
};

WarmStarts::WarmStarts(Loop& loop, Aside& aside, const Caller& caller, const Host& host,
                       const SessionSettings& settings)
    : loop_(loop), aside_(aside), caller_(caller), host_(host), settings_(settings) {}

WarmStarts::~WarmStarts() = default;

WarmStarts::All::const_iterator WarmStarts::find_one(const Policy& policy) const {
  return std::ranges::find(all_, policy_of_interpreter(policy),
                           [](const auto& one) { return one->policy; });
}

std::size_t WarmStarts::count_of(const std::string& owner) const {
  return static_cast<std::size_t>(
      std::ranges::count(all_, owner, [](const auto& one) { return one->owner; }));
}

// False: those that could go are still starting.
bool WarmStarts::make_room(const std::string& owner) {
  const bool has_its_share = !owner.empty() && count_of(owner) >= kMostOfOne;
  if (all_.size() < kMost && !has_its_share) return true;
  auto victim = all_.end();
  for (auto at = all_.begin(); at != all_.end(); ++at) {
    if ((*at)->starting || (has_its_share && (*at)->owner != owner)) continue;
    const bool worse = victim == all_.end() || count_of((*at)->owner) > count_of((*victim)->owner);
    if (worse) victim = at;
  }
  if (victim == all_.end()) return false;
  if ((*victim)->warm != nullptr) (*victim)->warm->retire();
  all_.erase(victim);
  return true;
}

std::shared_ptr<Warm> WarmStarts::find(const Policy& policy, const std::string& owner) {
  if (settings_.preload.empty() || may_write_programs(policy.files)) return nullptr;
  const auto found = find_one(policy);
  if (found == all_.end()) {
    if (!make_room(owner)) return nullptr;
    all_.push_back(std::make_shared<One>(
        One{.policy = policy_of_interpreter(policy), .owner = owner, .warm = {}, .why_not = {}}));
    begin_start(all_.back());
    return nullptr;
  }
  const std::shared_ptr<One> one = *found;
  std::rotate(all_.begin() + (found - all_.begin()), all_.begin() + (found - all_.begin()) + 1,
              all_.end());
  if (one->owner != owner) one->owner.clear();
  if (one->starting || one->warm == nullptr) return nullptr;
  if (one->warm->alive()) return one->warm;
  begin_start(one);
  return nullptr;
}

std::string WarmStarts::why_not(const Policy& policy) const {
  const auto found = find_one(policy);
  return found == all_.end() ? "" : (*found)->why_not;
}

void WarmStarts::begin_start(const std::shared_ptr<One>& one) {
  one->starting = true;
  begin(loop_, start(one, *this));
}

// What is aside works on copies: the engine may be gone before it has finished.
Async<void> WarmStarts::start(std::shared_ptr<One> one, WarmStarts& starts) {
  Loop& loop = starts.loop_;
  Aside& aside = starts.aside_;
  const std::string owner;  // it is everybody's
  if (one->warm != nullptr) {
    auto revive = [warm = one->warm] { return warm->revive(); };
    const Status revived = co_await aside.run(loop, owner, std::move(revive));
    if (!revived) one->why_not = revived.error().message();
    if (!revived) one->warm = nullptr;
  } else {
    auto begin_one = [policy = one->policy, caller = starts.caller_, host = starts.host_,
                      python = starts.settings_.python, preload = starts.settings_.preload] {
      Host own = host;
      return Warm::start(policy, caller, own, python, preload, std::string(worker_source()),
                         std::string(worker_display_source()));
    };
    Result<Warm> warm = co_await aside.run(loop, owner, std::move(begin_one));
    if (warm)
      one->warm = std::make_shared<Warm>(std::move(*warm));
    else
      one->why_not = warm.error().message();
  }
  one->starting = false;
}

}  // namespace belljar::session
