// Jars that stay, and pools of them, are Linux's: macOS has no namespaces to keep one in.
//
// Compiled for macOS, and with elsewhere.cc for every other system.
#include <cerrno>

#include "belljar/belljar.h"
#include "policy/profiles.h"

namespace belljar {

Result<Policy> profile(std::string_view name) {
  const Profile* found = find_profile(name);
  if (found != nullptr) return found->policy;
  return fail("there is no profile \"" + std::string(name) + "\"");
}

namespace {
std::unexpected<Error> only_linux() {
  return fail("a jar that stays can be had on Linux only", ENOTSUP, "belljar::run, on macOS");
}
const std::vector<Kept> kNothingKept;
const std::vector<Loss> kNothingLost;
}  // namespace

// No object of these is ever made.
Process::Process(Process&&) noexcept = default;
Process& Process::operator=(Process&&) noexcept = default;
Process::~Process() = default;
Result<Outcome> Process::wait() { return only_linux(); }
Result<std::optional<Outcome>> Process::wait_for(std::chrono::milliseconds /*time*/) {
  return only_linux();
}
Status Process::kill(int /*signal*/) { return only_linux(); }

Jar::Jar(Jar&&) noexcept = default;
Jar& Jar::operator=(Jar&&) noexcept = default;
Jar::~Jar() = default;
Result<Jar> Jar::start(const Policy& /*policy*/, const Caller& /*caller*/) { return only_linux(); }
Result<Process> Jar::spawn(const Command& /*command*/) { return only_linux(); }
bool Jar::alive() const { return false; }
void Jar::end() {}
const std::vector<Kept>& Jar::kept() const { return kNothingKept; }
const std::vector<Loss>& Jar::losses() const { return kNothingLost; }

struct Pool::State {};
Pool::Pool(Policy /*policy*/, std::size_t /*size*/, Caller /*caller*/) {}
Pool::Pool(Pool&&) noexcept = default;
Pool& Pool::operator=(Pool&&) noexcept = default;
Pool::~Pool() = default;
Status Pool::fill() { return only_linux(); }
Result<Jar> Pool::take() { return only_linux(); }
std::size_t Pool::ready() const { return 0; }

}  // namespace belljar
