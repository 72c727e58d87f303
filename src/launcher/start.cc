#include "launcher/start.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/clone.h"

namespace belljar::launcher {

bool reads_a_file(std::span<const int> fds) {
  return std::ranges::any_of(fds, [](int fd) {
    struct stat st{};
    return ::fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
           (::fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
  });
}

bool can_empty_files(const Plan& plan) {
  constexpr int kKnowsTruncate = 3;
  return plan.seccomp && !plan.seccomp->no_truncate && plan.landlock &&
         plan.landlock->abi < kKnowsTruncate;
}

Result<Started> start(const Policy& policy, const Caller& caller, Host& host, const Command* first,
                      const AboutToRun& about_to_run, const broker::OnEvent& on_event,
                      const Origin& origin) {
  for (;;) {
    Plan plan = TRY(resolve(policy, host, caller, Purpose::launch, origin.role));
    if (first != nullptr && reads_a_file(first->stdio_fds) && can_empty_files(plan))
      plan.seccomp->no_truncate = true;
    TRY(refuse_lost_promises(plan));
    TRY(about_to_run(plan));
    Result<Jar> jar = Jar::start(plan, first, on_event, origin.beneath);
    if (jar) return Started{std::move(plan), std::move(*jar)};
    // Where no process can be made, no other plan for this host can be carried out either.
    if (host.measured || !can_clone()) return std::unexpected(jar.error());
    host = probe_host(caller);
  }
}

Status check_stdio(const Policy& policy, const std::array<int, 3>& fds) {
  for (int fd : fds) {
    struct stat st{};
    if (::fstat(fd, &st) < 0) return fail("stat descriptor " + std::to_string(fd), errno);
    if (S_ISDIR(st.st_mode))
      return fail(
          "descriptor " + std::to_string(fd) + " is a folder, which would lead out of the sandbox",
          0, "redirect it to a file or /dev/null");
    int domain = 0;
    socklen_t size = sizeof domain;
    if (S_ISSOCK(st.st_mode) && policy.network != Network::full &&
        ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain != AF_UNIX)
      return fail(
          "descriptor " + std::to_string(fd) + " is a network socket, and the network is denied", 0,
          "pass the data through a pipe: … | belljar exec … | …");
  }
  return {};
}

}  // namespace belljar::launcher
