#include "call.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace belljar::python {

std::shared_ptr<Call> Call::make() {
  // Without a descriptor the asker looks from time to time.
  return std::shared_ptr<Call>(new Call(Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))));
}

void Call::tell(char kind, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (done_) return;
  const bool output = kind == 'o' || kind == 'e';
  if (output) {
    if (held_ + bytes.size() > kMostOutput) return;
    held_ += bytes.size();
  }
  done_ = kind == 'd';
  // One piece of what comes in many.
  const bool joins = output && !news_.empty() && news_.back().kind == kind &&
                     news_.back().bytes.size() + bytes.size() <= kPiece;
  if (joins)
    news_.back().bytes.append(bytes);
  else
    news_.push_back({kind, std::string(bytes)});
  const std::uint64_t one = 1;
  (void)::write(fd_.get(), &one, sizeof one);  // full means that it is readable already
}

bool Call::is_done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

std::optional<News> Call::next() {
  const std::lock_guard lock(mutex_);
  if (news_.empty()) {
    std::uint64_t count = 0;
    (void)::read(fd_.get(), &count, sizeof count);  // empty already, perhaps
    return std::nullopt;
  }
  News news = std::move(news_.front());
  news_.pop_front();
  if (news.kind == 'o' || news.kind == 'e') held_ -= news.bytes.size();
  return news;
}

}  // namespace belljar::python
