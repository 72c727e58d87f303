#include "server/continuations.h"

namespace belljar::server {

void Continuations::Job::hear(std::string_view bytes) {
  so_far.append(bytes);
  if (so_far.size() > 2 * kMaxSoFar) so_far.erase(0, so_far.size() - kMaxSoFar);
}

std::shared_ptr<Continuations::Job> Continuations::add(const std::string& session,
                                                       const std::string& tool) {
  auto& mine = jobs_[session];
  if (mine.size() >= kMaxContinuations) return nullptr;
  auto job = std::make_shared<Job>(loop_);
  job->id = "c" + std::to_string(++last_);
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
  while (!job->answer && Clock::now() < until) co_await job->done.wait_until(until);
  co_return job->answer.has_value();
}

}  // namespace belljar::server
