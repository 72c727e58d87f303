#include "session/warm_starts.h"

#include <algorithm>

#include "session/sources.h"

namespace belljar::session {
namespace {

// Each is an interpreter with everything imported.
constexpr std::size_t kMost = 4;

}  // namespace

struct WarmStarts::One {
  Policy policy;
  std::shared_ptr<Warm> warm;
  bool starting = false;
  std::string why_not;
};

WarmStarts::WarmStarts(Loop& loop, Aside& aside, const Caller& caller, const Host& host,
                       const SessionSettings& settings)
    : loop_(loop), aside_(aside), caller_(caller), host_(host), settings_(settings) {}

WarmStarts::~WarmStarts() = default;

std::shared_ptr<Warm> WarmStarts::find(const Policy& policy) {
  if (settings_.preload.empty()) return nullptr;
  auto found = std::ranges::find(all_, policy, [](const auto& one) { return one->policy; });
  if (found == all_.end()) {
    if (all_.size() == kMost) return nullptr;
    all_.push_back(std::make_shared<One>(One{.policy = policy, .warm = {}, .why_not = {}}));
    begin_start(all_.back());
    return nullptr;
  }
  const std::shared_ptr<One>& one = *found;
  if (one->starting || one->warm == nullptr) return nullptr;
  if (one->warm->alive()) return one->warm;
  begin_start(one);
  return nullptr;
}

std::string WarmStarts::why_not(const Policy& policy) const {
  auto found = std::ranges::find(all_, policy, [](const auto& one) { return one->policy; });
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
