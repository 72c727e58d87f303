#include "session/aside.h"

#include "base/signals.h"

namespace belljar::session {

void Aside::begin(std::move_only_function<void()> work, std::string owner) {
  bool needs_thread = false;
  {
    const std::lock_guard lock(mutex_);
    queues_[std::move(owner)].waiting.push_back(std::move(work));
    needs_thread = ++waiting_ > idle_ && threads_.size() < kThreads;
  }
  news_.notify_one();
  if (!needs_thread) return;
  const SignalsBlocked blocked;  // signals are the loop's affair
  threads_.emplace_back([this] { this->work(); });
}

// The first after the one whose turn it was who has work and may have another thread.
Aside::Queues::iterator Aside::next() {
  auto at = queues_.upper_bound(last_);
  for (std::size_t looked_at = 0; looked_at < queues_.size(); ++looked_at, ++at) {
    if (at == queues_.end()) at = queues_.begin();
    const Queue& queue = at->second;
    if (!queue.waiting.empty() && queue.running < kMostOfOne) return at;
  }
  return queues_.end();
}

void Aside::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto mine = next();
    if (mine == queues_.end()) {
      // What waits for its owner's other work is taken by the thread that does that.
      if (finishing_) return;
      ++idle_;
      news_.wait(lock);
      --idle_;
      continue;
    }
    Queue& queue = mine->second;
    last_ = mine->first;
    std::move_only_function<void()> job = std::move(queue.waiting.front());
    queue.waiting.pop_front();
    --waiting_;
    ++queue.running;
    lock.unlock();
    job();
    job = nullptr;  // what it holds goes while nobody waits for the lock
    lock.lock();
    --queue.running;
    if (queue.running == 0 && queue.waiting.empty()) queues_.erase(mine);
  }
}

void Aside::finish() {
  {
    const std::lock_guard lock(mutex_);
    finishing_ = true;
  }
  news_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  finishing_ = false;  // nobody else is there
}

}  // namespace belljar::session
