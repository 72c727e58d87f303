// Turns: one at a time, in the order of asking.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <utility>

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

  Async<Turn> take();

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
  Async<std::optional<Turn>> take(std::shared_ptr<Wish> wish);

 private:
  void pass_on();

  Loop& loop_;
  std::deque<std::shared_ptr<Wish>> waiting_;
  bool taken_ = false;
};

}  // namespace belljar::session
