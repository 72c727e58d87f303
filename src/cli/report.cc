#include "cli/report.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>

#include "base/fd.h"
#include "base/json.h"
#include "base/syscall.h"
#include "plan/paths.h"
#include "plan/planted.h"

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

Result<ReportFile> ReportFile::prepare(const std::string& path, const Files& files,
                                       const Caller& caller) {
  const std::string full = path.starts_with('/') ? path : caller.cwd + "/" + path;
  const std::size_t slash = full.rfind('/');
  Tracer tracer;
  Result<Traced> traced = tracer.trace(full.substr(0, slash + 1));
  if (!traced) return fail("write the report " + path, traced.error().err);
  TRY(GuestTrees(files, caller, tracer).check(*traced, "report", path));
  Fd folder = TRY(open_traced(traced->path, traced->st));
  if (::faccessat(folder.get(), ".", W_OK | X_OK, 0) < 0)
    return fail("write the report " + path, errno);
  return ReportFile(path, full.substr(slash + 1), std::move(folder));
}

Status ReportFile::write(const Policy& policy, const Outcome& outcome) const {
  // The folder may be the guest's own: what it put there is neither written through, a
  // symlink or a hard link, nor waited for, a FIFO.
  struct stat st{};
  if (::fstatat(folder_.get(), name_.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
      !S_ISREG(st.st_mode))
    return fail("write the report " + path_ + ": not a regular file");
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) < 0) return fail("getrandom", errno);
  const std::string temporary = ".belljar-report-" + std::to_string(random);
  Fd file(
      ::openat(folder_.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file) return fail("write the report " + path_, errno);
  auto give_up = [&] {
    const int err = errno;
    ::unlinkat(folder_.get(), temporary.c_str(), 0);  // nothing more can be done about it
    return fail("write the report " + path_, err);
  };
  std::string text = pretty(to_json(policy, outcome));
  std::string_view rest = text;
  while (!rest.empty()) {
    ssize_t n = retry([&] { return ::write(file.get(), rest.data(), rest.size()); });
    if (n < 0) return give_up();
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::renameat(folder_.get(), temporary.c_str(), folder_.get(), name_.c_str()) < 0)
    return give_up();
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
