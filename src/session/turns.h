// Turns: one at a time, in the order of asking.
#pragma once

#include <deque>
#include <memory>

#include "base/loop.h"

namespace belljar::session {

class Turns {
 public:
  explicit Turns(Loop& loop) : loop_(loop) {}

  // Passed on when it goes out of scope, which must be before the Turns do.
  class Turn {
   public:
    explicit Turn(Turns& turns) : turns_(&turns) {}
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)) {}
    Turn& operator=(Turn&&) = delete;
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
      if (turns_ != nullptr) turns_->pass_on();
    }

   private:
    Turns* turns_;
  };

  Async<Turn> take() {
    if (taken_) {
      auto mine = std::make_shared<Signal>(loop_);
      waiting_.push_back(mine);
      co_await mine->wait();  // pass_on leaves it taken for us
    }
    taken_ = true;
    co_return Turn(*this);
  }

 private:
  void pass_on() {
    taken_ = !waiting_.empty();
    if (!taken_) return;
    waiting_.front()->raise();
    waiting_.pop_front();
  }

  Loop& loop_;
  std::deque<std::shared_ptr<Signal>> waiting_;
  bool taken_ = false;
};

}  // namespace belljar::session
