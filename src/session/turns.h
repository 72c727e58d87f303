// Turns: one at a time, in the order of asking.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>

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
      auto mine = std::make_shared<Wish>(loop_);
      waiting_.push_back(mine);
      co_await mine->news_.wait();  // pass_on leaves it taken for us
    }
    taken_ = true;
    co_return Turn(*this);
  }

  // Of somebody who may no longer want it before it comes.
  class Wish {
   public:
    explicit Wish(Loop& loop) : news_(loop) {}
    void give_up() {
      given_up_ = true;
      news_.raise();
    }

   private:
    friend class Turns;
    Signal news_;
    bool granted_ = false;
    bool given_up_ = false;
  };
  // nullopt: it was given up first, and those behind it wait for one less.
  Async<std::optional<Turn>> take(std::shared_ptr<Wish> wish) {
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

 private:
  void pass_on() {
    taken_ = !waiting_.empty();
    if (!taken_) return;
    waiting_.front()->granted_ = true;
    waiting_.front()->news_.raise();
    waiting_.pop_front();
  }

  Loop& loop_;
  std::deque<std::shared_ptr<Wish>> waiting_;
  bool taken_ = false;
};

}  // namespace belljar::session
