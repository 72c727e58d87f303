#include "session/turns.h"

namespace belljar::session {

Async<Turns::Turn> Turns::take() {
  if (taken_) {
    auto mine = std::make_shared<Wish>(loop_);
    waiting_.push_back(mine);
    co_await mine->news_.wait();  // pass_on leaves it taken for us
  }
  taken_ = true;
  co_return Turn(*this);
}

Async<std::optional<Turns::Turn>> Turns::take(std::shared_ptr<Wish> wish) {
  if (taken_) {
    waiting_.push_back(wish);
    while (!wish->granted_ && !wish->given_up_) co_await wish->news_.wait();
    if (!wish->granted_) {
      std::erase(waiting_, wish);
      co_return std::nullopt;
    }
  }
  taken_ = true;
  co_return Turn(*this);
}

void Turns::pass_on() {
  taken_ = !waiting_.empty();
  if (!taken_) return;
  waiting_.front()->granted_ = true;
  waiting_.front()->news_.raise();
  waiting_.pop_front();
}

}  // namespace belljar::session
