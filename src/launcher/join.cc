#include "launcher/join.h"

#include <array>
#include <cerrno>
#include <string_view>

#include "base/child.h"
#include "base/passing.h"
#include "launcher/request.h"

namespace belljar::launcher {
namespace {

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string_view bytes_of_filter(const sock_fprog& program) {
  return {reinterpret_cast<const char*>(program.filter), program.len * sizeof(sock_filter)};
}

Status check_joinable(const Plan& plan, const Jar& jar) {
  if (plan.role != Role::joinable) return fail("this jar was not made to be joined");
  if (!plan.identity || !plan.identity->user_namespace)
    return fail("a jar without a user namespace cannot be joined");
  if (!plan.view || !plan.pid_namespace)
    return fail("a jar without mounts and processes of its own cannot be joined");
  if (plan.landlock && jar.ruleset_fd() < 0) return fail("this jar's ruleset was not kept");
  if (jar.has_ended()) return fail("the jar has ended");
  return {};
}

}  // namespace

Result<JoinRequest> join_request(const Plan& plan, const Jar& jar,
                                 const std::vector<std::string>& environment) {
  TRY(check_joinable(plan, jar));
  const std::string folder = plan.layout.workdir.empty() ? "/" : plan.layout.workdir;
  std::string variables;
  for (const std::string& variable : overlay(plan.environment, environment))
    variables.append(variable).push_back('\0');
  const std::string_view listener =
      plan.notify ? bytes_of_filter(notify::filter(*plan.notify)) : "";
  const std::string_view filter = plan.seccomp ? bytes_of_filter(plan.seccomp->filter) : "";

  const std::optional<uid_t> uid = jar.uid();
  JoinRequest request{
      .call = {.namespaces = plan.clone_flags(), .uid = uid ? std::int64_t{*uid} : -1},
      .bytes = {},
      .ruleset_fd = jar.ruleset_fd()};
  request.bytes = bytes_of(
      join::Request{.has_ruleset = request.ruleset_fd >= 0,
                    .waits = jar.group().fd() >= 0,
                    .limits = static_cast<std::uint32_t>(plan.rlimit.limits.size()),
                    .listener = static_cast<std::uint32_t>(listener.size() / sizeof(sock_filter)),
                    .filter = static_cast<std::uint32_t>(filter.size() / sizeof(sock_filter)),
                    .folder = static_cast<std::uint32_t>(folder.size() + 1),
                    .variables = static_cast<std::uint32_t>(variables.size()),
                    .unused = 0});
  for (const rlimit::Limit& limit : plan.rlimit.limits)
    request.bytes += bytes_of(join::Limit{.resource = static_cast<std::uint64_t>(limit.resource),
                                          .soft = limit.value.rlim_cur,
                                          .hard = limit.value.rlim_max});
  request.bytes.append(listener).append(filter).append(folder).append(1, '\0').append(variables);
  if (request.bytes.size() > join::kMaxRequest)
    return fail("the variables are too long to join a jar with", E2BIG);
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
