// The public API: a thin front of Live.
#include "belljar/belljar.h"

#include <deque>
#include <ranges>

#include "base/commas.h"
#include "launcher/live.h"
#include "plan/explain.h"
#include "policy/profiles.h"

namespace belljar {

using launcher::Live;

Result<Policy> profile(std::string_view name) {
  const Profile* found = find_profile(name);
  if (found != nullptr) return found->policy;
  return fail("there is no profile \"" + std::string(name) + "\"", 0,
              "one of " + with_commas(profiles() | std::views::transform(&Profile::name)));
}

Result<std::string> explain(const Policy& policy, const Caller& caller) {
  return explain(TRY(resolve(policy, probe_host(caller), caller, Purpose::explain)));
}

Result<Outcome> run(const Policy& policy, const Command& command, const Caller& caller) {
  Host host = assume_host();
  std::shared_ptr<Live> live = TRY(Live::start(policy, caller, host, &command));
  return *TRY(live->wait(1));  // without a time there is always an outcome
}

// ---- Process ------------------------------------------------------------------

Process::Process(std::shared_ptr<Live> jar, std::uint32_t id) : jar_(std::move(jar)), id_(id) {}
Process::Process(Process&&) noexcept = default;
Process& Process::operator=(Process&& other) noexcept {
  std::swap(jar_, other.jar_);
  std::swap(id_, other.id_);
  std::swap(outcome_, other.outcome_);
  return *this;
}
Process::~Process() {
  if (jar_ != nullptr) jar_->forget(id_);
}

Result<Outcome> Process::wait() {
  if (!outcome_) outcome_ = TRY(jar_->wait(id_));
  return *outcome_;
}

Result<std::optional<Outcome>> Process::wait_for(std::chrono::milliseconds time) {
  if (!outcome_) outcome_ = TRY(jar_->wait(id_, time));
  return outcome_;
}

Status Process::kill(int signal) { return jar_->signal(id_, signal); }

// ---- Jar ----------------------------------------------------------------------

Jar::Jar(std::shared_ptr<Live> live) : live_(std::move(live)) {}
Jar::Jar(Jar&&) noexcept = default;
Jar& Jar::operator=(Jar&& other) noexcept {
  std::swap(live_, other.live_);
  return *this;
}
Jar::~Jar() {
  if (live_ != nullptr) live_->end();
}

Result<Jar> Jar::start(const Policy& policy, const Caller& caller) {
  Host host = assume_host();
  return Jar(TRY(Live::start(policy, caller, host)));
}

Result<Process> Jar::spawn(const Command& command) {
  return Process(live_, TRY(live_->spawn(command)));
}

bool Jar::alive() const { return live_->alive(); }
void Jar::end() { live_->end(); }
const std::vector<Kept>& Jar::kept() const { return live_->kept(); }
const std::vector<Loss>& Jar::losses() const { return live_->losses(); }

// ---- Pool ---------------------------------------------------------------------

struct Pool::State {
  Policy policy;
  std::size_t size;
  Caller caller;
  Host host = assume_host();
  std::deque<Jar> jars;

  Result<Jar> start() { return Jar(TRY(Live::start(policy, caller, host))); }
};

Pool::Pool(Policy policy, std::size_t size, Caller caller)
    : state_(new State{.policy = std::move(policy), .size = size, .caller = std::move(caller)}) {}
Pool::Pool(Pool&&) noexcept = default;
Pool& Pool::operator=(Pool&&) noexcept = default;
Pool::~Pool() = default;

Status Pool::fill() {
  std::erase_if(state_->jars, [](const Jar& jar) { return !jar.alive(); });
  while (state_->jars.size() < state_->size) state_->jars.push_back(TRY(state_->start()));
  return {};
}

Result<Jar> Pool::take() {
  while (!state_->jars.empty()) {
    Jar jar = std::move(state_->jars.front());
    state_->jars.pop_front();
    if (jar.alive()) return jar;
  }
  return state_->start();
}

std::size_t Pool::ready() const { return state_->jars.size(); }

}  // namespace belljar
