#include "launcher/join.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "base/child.h"
#include "base/passing.h"
#include "launcher/request.h"

namespace belljar::launcher {
namespace {

// Followed by `parts` byte strings, each with its length in front: the limits, the filter, the
// folder to start in, and the variables.
struct JoinHeader {
  std::uint64_t namespaces;
  std::int64_t uid;  // -1: the one it has
  std::uint32_t has_ruleset;
  std::uint32_t waits;  // for its cgroup, into which the supervisor moves it
  std::uint32_t parts;
  std::uint32_t unused;
};

struct JoinLimit {
  std::uint64_t resource, soft, hard;
};

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

void append_part(std::string& bytes, std::string_view part) {
  const auto size = static_cast<std::uint32_t>(part.size());
  bytes.append(bytes_of(size)).append(part);
}

std::string limits_of(const rlimit::Plan& plan) {
  std::string bytes;
  for (const rlimit::Limit& limit : plan.limits)
    bytes.append(bytes_of(JoinLimit{static_cast<std::uint64_t>(limit.resource),
                                    limit.value.rlim_cur, limit.value.rlim_max}));
  return bytes;
}

std::string_view filter_of(const Plan& plan) {
  if (!plan.seccomp) return {};
  const sock_fprog& filter = plan.seccomp->filter;
  return {reinterpret_cast<const char*>(filter.filter), filter.len * sizeof *filter.filter};
}

Status check_joinable(const Plan& plan, const Jar& jar) {
  if (plan.role != Role::joinable) return fail("this jar was not made to be joined");
  if (!plan.identity || !plan.identity->user_namespace)
    return fail("a jar without a user namespace cannot be joined");
  if (!plan.view || !plan.pid_namespace)
    return fail("a jar without mounts and processes of its own cannot be joined");
  if (plan.notify) return fail("a jar with a network by name cannot be joined");
  if (plan.landlock && jar.ruleset_fd() < 0) return fail("this jar's ruleset was not kept");
  if (jar.has_ended()) return fail("the jar has ended");
  return {};
}

}  // namespace

Result<JoinRequest> join_request(const Plan& plan, const Jar& jar,
                                 const std::vector<std::string>& over) {
  TRY(check_joinable(plan, jar));
  const std::vector<std::string> environment = overlay(plan.environment, over);
  const std::optional<uid_t> uid = jar.uid();
  const JoinHeader header{.namespaces = plan.clone_flags(),
                          .uid = uid ? std::int64_t{*uid} : -1,
                          .has_ruleset = jar.ruleset_fd() >= 0,
                          .waits = jar.group().fd() >= 0,
                          .parts = static_cast<std::uint32_t>(3 + environment.size()),
                          .unused = 0};
  JoinRequest request{.bytes = std::string(bytes_of(header)), .fds = {jar.init_pidfd()}};
  if (jar.ruleset_fd() >= 0) request.fds.push_back(jar.ruleset_fd());
  append_part(request.bytes, limits_of(plan.rlimit));
  append_part(request.bytes, filter_of(plan));
  append_part(request.bytes, plan.layout.workdir.empty() ? "/" : plan.layout.workdir);
  for (const std::string& variable : environment) append_part(request.bytes, variable);
  return request;
}

void hand_out_ruleset(int control_fd, int ruleset_fd, const Child& child) noexcept {
  const int fds[] = {ruleset_fd};
  child.must(send_with_fds(control_fd, "r", fds), "hand out the Landlock ruleset");
}

Result<Fd> receive_ruleset(int control_fd) {
  std::array<char, 1> byte{};
  Received received = TRY(receive_with_fds(control_fd, byte));
  if (received.size != 1 || received.fds.size() != 1)
    return fail("receive the jar's Landlock ruleset", EPROTO);
  return std::move(received.fds[0]);
}

}  // namespace belljar::launcher
