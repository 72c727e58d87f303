#include "server/continuations.h"

namespace belljar::server {

void Continuations::Job::hear(std::string_view bytes) {
  so_far.append(bytes);
  if (so_far.size() > 2 * kMaxSoFar) so_far.erase(0, so_far.size() - kMaxSoFar);
}

void Continuations::Job::finish(ToolAnswer with) {
  answer = std::move(with);
  for (const std::weak_ptr<Signal>& weak : waiting)
    if (const std::shared_ptr<Signal> one = weak.lock()) one->raise();
}

std::shared_ptr<Continuations::Job> Continuations::add(const std::string& session,
                                                       const std::string& tool) {
  auto& mine = jobs_[session];
  if (mine.size() >= kMaxContinuations) {
    auto oldest = mine.end();
    for (auto one = mine.begin(); one != mine.end(); ++one)
      if (one->second->answer &&
          (oldest == mine.end() || one->second->number < oldest->second->number))
        oldest = one;
    if (oldest == mine.end()) return nullptr;
    mine.erase(oldest);
  }
  auto job = std::make_shared<Job>(loop_);
  job->number = ++last_;
  job->id = "c" + std::to_string(job->number);
  job->tool = tool;
  mine[job->id] = job;
  return job;
}

std::shared_ptr<Continuations::Job> Continuations::find(const std::string& session,
                                                        const std::string& id) const {
  const auto mine = jobs_.find(session);
  if (mine == jobs_.end()) return nullptr;
  const auto job = mine->second.find(id);
  return job == mine->second.end() ? nullptr : job->second;
}

void Continuations::remove(const std::string& session, const std::string& id) {
  const auto mine = jobs_.find(session);
  if (mine == jobs_.end()) return;
  mine->second.erase(id);
  if (mine->second.empty()) jobs_.erase(mine);
}

Async<bool> Continuations::wait(std::shared_ptr<Job> job, Clock::time_point until) {
  const auto mine = std::make_shared<Signal>(job->loop);
  job->waiting.push_back(mine);
  while (!job->answer && Clock::now() < until) co_await mine->wait_until(until);
  std::erase_if(job->waiting, [&](const auto& one) { return one.lock() == mine; });
  co_return job->answer.has_value();
}

}  // namespace belljar::server
