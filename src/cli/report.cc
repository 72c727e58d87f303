#include "cli/report.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <csignal>
#include <cstdlib>

#include "base/fd.h"
#include "base/file.h"
#include "base/json.h"
#include "base/random.h"
#include "base/syscall.h"
#include "plan/outcome_json.h"
#include "plan/paths.h"
#include "plan/planted.h"

namespace belljar::cli {
namespace {

// A guest that tries every address must not fill the terminal.
constexpr std::size_t kMostDenials = 5;

Error not_regular(const std::string& path) {
  return {.what = "write the report " + path + ": not a regular file",
          .err = 0,
          .hint = "name a file: --report=report.json"};
}

}  // namespace

Result<ReportFile> ReportFile::prepare(const std::string& path, const Files& files,
                                       const Caller& caller) {
  if (path == "-")
    return fail("--report=-: stdout and stderr are the program's", 0,
                "name a file: --report=report.json");
  if (path.ends_with('/') || path.starts_with("/dev/") || path.starts_with("/proc/"))
    return std::unexpected(not_regular(path));
  const std::string full = path.starts_with('/') ? path : caller.cwd + "/" + path;
  const std::size_t slash = full.rfind('/');
  Tracer tracer;
  Result<Traced> traced = tracer.trace(full.substr(0, slash + 1));
  if (!traced) return fail("write the report " + path, traced.error().err);
  TRY(GuestTrees(files, caller, tracer).check(*traced, "report", path));
  ReportFile file(path, full.substr(slash + 1), TRY(open_traced(traced->path, traced->st)));
  if (::faccessat(file.folder_.get(), ".", W_OK | X_OK, 0) < 0)
    return fail("write the report " + path, errno);
  TRY(file.check_replaceable());
  return file;
}

// It will be replaced, and neither a folder nor a device must be. What a symlink leads to
// is not touched.
Status ReportFile::check_replaceable() const {
  struct stat st{};
  const bool there = ::fstatat(folder_.get(), name_.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
  if (there && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
    return std::unexpected(not_regular(path_));
  return {};
}

Status ReportFile::write(const Policy& policy, const Outcome& outcome) const {
  // The folder may be the guest's own: what it put there is neither written through, a
  // symlink or a hard link, nor waited for, a FIFO; and no half report is ever seen.
  TRY(check_replaceable());
  const std::string beside = ".belljar-report-" + random_hex(8);
  Fd file(::openat(folder_.get(), beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) return fail("write the report " + path_, errno);
  if (write_all(file.get(), pretty(outcome_to_json(policy, outcome))) &&
      ::renameat(folder_.get(), beside.c_str(), folder_.get(), name_.c_str()) == 0)
    return {};
  const int err = errno;
  ::unlinkat(folder_.get(), beside.c_str(), 0);  // nothing more can be done about it
  return fail("write the report " + path_, err);
}

namespace {

// It ended by itself, after a limit stopped something that it had started.
std::string about_felt_limit(const std::string& limit, const Limits& limits) {
  if (limit == "max_file_sz_mb")
    return "it met a limit: a file larger than " + std::to_string(limits.file_sz_mb.value_or(0)) +
           " MB (--max-file-sz-mb changes it)";
  if (limit == "max_cpu_secs")
    return "it met a limit: more than " + std::to_string(limits.cpu_secs.value_or(0)) +
           " s of CPU time (--max-cpu-secs changes it)";
  if (limit == "max_procs")
    return "it met a limit: more than " + std::to_string(limits.procs.value_or(0)) +
           " processes and threads (--max-procs changes it)";
  return {};
}

bool is_filtered(const Outcome& outcome) {
  return std::ranges::any_of(outcome.kept,
                             [](const Kept& kept) { return kept.promise == Promise::syscalls; });
}

}  // namespace

std::string in_words(const NetworkEvent& event) {
  std::string text = event.allowed ? "allowed " : "denied ";
  text.append(event.name);
  if (!event.address.empty()) {
    const std::string place =
        event.address.find(':') == event.address.npos ? event.address : "[" + event.address + "]";
    const std::string port = ":" + std::to_string(event.port);
    text.append(event.name.empty() ? place + port : port + " at " + event.address);
  }
  text.append(" (").append(event.protocol);
  if (!event.process.empty()) text.append(", by ").append(event.process);
  text.append(")");
  if (event.allowed) return event.rule.empty() ? text : text + " by " + event.rule;
  text.append(": ").append(event.why);
  if (!event.would_allow.empty())
    text.append("; --allow-net=").append(event.would_allow).append(" would allow it");
  return text;
}

std::vector<std::string> denials(const std::vector<NetworkEvent>& events) {
  std::vector<std::string> lines;
  std::size_t more = 0;
  for (const NetworkEvent& event : events) {
    if (event.allowed) continue;
    std::string line = in_words(event);
    if (std::ranges::find(lines, line) != lines.end()) continue;
    if (lines.size() < kMostDenials)
      lines.push_back(std::move(line));
    else
      ++more;
  }
  if (more > 0) lines.push_back("denied " + std::to_string(more) + " more (--report lists them)");
  return lines;
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
      // The filter kills only what no compiler makes here; but anyone can send a SIGSYS.
      if (outcome.code == SIGSYS && is_filtered(outcome))
        return "ended by SIGSYS, most likely for system calls of another architecture, such as "
               "those of 32-bit programs";
      return {};
    case Reason::exited:
      return outcome.code != 0 && !outcome.limits_hit.empty()
                 ? about_felt_limit(outcome.limits_hit.front(), limits)
                 : std::string();
    default:
      return {};
  }
}

}  // namespace belljar::cli
