#include "cli/report.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>

#include "base/fd.h"
#include "base/json.h"
#include "base/syscall.h"

namespace belljar::cli {
namespace {

namespace json = boost::json;

json::object to_json(const Policy& policy, const Outcome& outcome) {
  json::object report;
  report["schema_version"] = 1;
  report["profile"] = policy.profile;
  report["mode"] = name(policy.mode);
  report["reason"] = name(outcome.reason);
  report["exit_code"] = outcome.exit_code();
  if (outcome.by_signal)
    report["signal"] = outcome.code;
  else
    report["status"] = outcome.code;
  report["wall_ms"] = static_cast<double>(outcome.wall.count()) / 1000;
  report["user_cpu_ms"] = static_cast<double>(outcome.user_cpu.count()) / 1000;
  report["system_cpu_ms"] = static_cast<double>(outcome.system_cpu.count()) / 1000;
  report["peak_memory_kb"] = outcome.peak_memory_kb;
  report["limits_hit"] = json::array(outcome.limits_hit.begin(), outcome.limits_hit.end());
  report["enforced"] = promises_to_json(outcome.kept);
  report["losses"] = losses_to_json(outcome.losses);
  json::object& phases = report["launch_us"].emplace_object();
  for (const auto& [phase, time] : outcome.phases) phases[phase] = time.count();
  return report;
}

}  // namespace

Status check_report(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
  if (::access(folder.c_str(), W_OK | X_OK) < 0) return fail("write the report " + path, errno);
  return {};
}

Status write_report(const std::string& path, const Policy& policy, const Outcome& outcome) {
  // The place may be the guest's own workdir: it must not be made to write
  // through a symlink, nor to wait for a reader.
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                 0644));
  if (!file) return fail("write the report " + path, errno);
  struct stat st{};
  if (::fstat(file.get(), &st) < 0 || !S_ISREG(st.st_mode))
    return fail("write the report " + path + ": not a regular file");
  std::string text = pretty(to_json(policy, outcome));
  std::string_view rest = text;
  while (!rest.empty()) {
    ssize_t n = retry([&] { return ::write(file.get(), rest.data(), rest.size()); });
    if (n < 0) return fail("write the report " + path, errno);
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  return {};
}

std::string last_words(const Policy& policy, const Outcome& outcome) {
  const Limits& limits = policy.limits;
  switch (outcome.reason) {
    case Reason::timeout:
      return "ended after " +
             std::to_string(limits.timeout.value_or(std::chrono::milliseconds(0)).count()) +
             " ms (--timeout changes it)";
    case Reason::out_of_memory:
      return "ended: it used more than " + std::to_string(limits.memory_mb.value_or(0)) +
             " MB of memory (--max-memory-mb changes it)";
    case Reason::cpu_limit:
      return "ended: it used more than " + std::to_string(limits.cpu_secs.value_or(0)) +
             " s of CPU time (--max-cpu-secs changes it)";
    case Reason::file_size_limit:
      return "ended: it wrote a file larger than " + std::to_string(limits.file_sz_mb.value_or(0)) +
             " MB (--max-file-sz-mb changes it)";
    case Reason::signaled:
      if (outcome.code == 31)  // SIGSYS: the filter kills only what no compiler makes here
        return "ended: it made system calls of another architecture";
      return {};
    default:
      return {};
  }
}

}  // namespace belljar::cli
