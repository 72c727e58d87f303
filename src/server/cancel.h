// Cancel: somebody no longer wants what was asked for. Asked once, heard by who listens.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <utility>

namespace belljar::server {

class Cancel {
 public:
  using Listener = std::function<void()>;

  bool asked() const { return asked_; }
  void ask() {
    if (std::exchange(asked_, true)) return;
    // A listener may end what holds the others.
    for (auto& [id, listener] : std::exchange(listeners_, {})) listener();
  }

  // The listener is called at most once, and not after this object has gone.
  class Hearing {
   public:
    Hearing(std::shared_ptr<Cancel> cancel, Listener listener) : cancel_(std::move(cancel)) {
      if (cancel_ == nullptr) return;
      id_ = ++cancel_->last_;
      cancel_->listeners_.emplace(id_, std::move(listener));
    }
    Hearing(const Hearing&) = delete;
    Hearing& operator=(const Hearing&) = delete;
    ~Hearing() {
      if (cancel_ != nullptr) cancel_->listeners_.erase(id_);
    }

   private:
    std::shared_ptr<Cancel> cancel_;
    std::size_t id_ = 0;
  };

 private:
  bool asked_ = false;
  std::size_t last_ = 0;
  std::map<std::size_t, Listener> listeners_;
};

}  // namespace belljar::server
