#include "base/pidfd.h"

#include <cerrno>
#include <charconv>
#include <string>
#include <string_view>

#include "base/file.h"

namespace belljar {
namespace {

// The last number on the line that begins with `name`; 0: there is none.
pid_t last_number(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  if (at == text.npos) return 0;
  std::string_view line = text.substr(at + name.size());
  line = line.substr(0, line.find('\n'));
  line.remove_prefix(std::min(line.rfind('\t') + 1, line.size()));
  pid_t number = 0;
  std::from_chars(line.data(), line.data() + line.size(), number);
  return number;
}

}  // namespace

Result<Pids> pids_of(int pidfd) {
  const std::string path = "/proc/self/fdinfo/" + std::to_string(pidfd);
  const std::string text = read_text(path).value_or("");
  const Pids pids{.here = last_number(text, "\nPid:\t"), .inside = last_number(text, "\nNSpid:\t")};
  if (pids.here <= 0 || pids.inside <= 0) return fail("find the process of " + path, ESRCH);
  return pids;
}

}  // namespace belljar
