#include "base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/syscall.h"

namespace belljar {

std::optional<std::string> read_text(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string text;
  char buffer[4096];
  for (;;) {
    ssize_t n = retry([&] { return ::read(file.get(), buffer, sizeof buffer); });
    if (n < 0) return std::nullopt;
    if (n == 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
  }
}

Status write_text(const std::string& path, std::string_view text) {
  Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) return fail("open " + path, errno);
  ssize_t n = retry([&] { return ::write(file.get(), text.data(), text.size()); });
  if (n != static_cast<ssize_t>(text.size())) return fail("write " + path, errno);
  return {};
}

}  // namespace belljar
