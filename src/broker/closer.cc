#include "broker/closer.h"

#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace belljar::broker {
namespace {

// A close takes a few microseconds. Only a guest that makes them last has so many.
constexpr std::size_t kMostWaiting = 256;

}  // namespace

struct Closer::State {
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::vector<Fd> waiting;
  bool started = false;
  bool ended = false;

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return ended || !waiting.empty(); });
      if (waiting.empty()) return;
      // One after the other, so that those behind one that lasts still count.
      Fd fd = std::move(waiting.back());
      waiting.pop_back();
      lock.unlock();
      fd.reset();
      lock.lock();
    }
  }
};

// It ends by itself, perhaps after us, and holds nothing but its state. False: the user has too
// many threads. Then the next close tries again, and until that succeeds all of them wait.
bool Closer::start(const std::shared_ptr<State>& state) {
  try {
    std::thread([state] { state->run(); }).detach();
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

Closer::Closer() : state_(std::make_shared<State>()) {}

Closer::~Closer() {
  const std::lock_guard lock(state_->mutex);
  state_->ended = true;
  state_->changed.notify_one();
}

void Closer::close(Fd fd) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->waiting.push_back(std::move(fd));
    if (!state_->started) state_->started = start(state_);
  }
  state_->changed.notify_one();  // which would otherwise wait for the lock
}

bool Closer::is_full() const {
  const std::lock_guard lock(state_->mutex);
  return state_->waiting.size() >= kMostWaiting;
}

}  // namespace belljar::broker
