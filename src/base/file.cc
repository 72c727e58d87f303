#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

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

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = retry([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

Result<std::string> read_regular(const std::string& path, std::size_t limit) {
  // O_NONBLOCK: opening a FIFO would wait for a writer.
  Fd file = TRY(open_path(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat st{};
  if (::fstat(file.get(), &st) < 0) return fail("stat " + path, errno);
  if (!S_ISREG(st.st_mode)) return fail(path + " is not a regular file");
  std::string text;
  char buffer[4096];
  for (;;) {
    ssize_t n = retry([&] { return ::read(file.get(), buffer, sizeof buffer); });
    if (n < 0) return fail("read " + path, errno);
    if (n == 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > limit)
      return fail(path + " is larger than " + std::to_string(limit) + " bytes");
  }
}

Status replace_file(const std::string& path, std::string_view text, mode_t mode) {
  std::string temporary = path + ".XXXXXX";
  Fd file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file) return fail("create " + temporary, errno);
  auto give_up = [&](const std::string& what) {
    Error error{.what = what + " " + temporary, .err = errno, .hint = {}};
    ::unlink(temporary.c_str());  // nothing more can be done about it
    return std::unexpected(std::move(error));
  };
  if (::fchmod(file.get(), mode) < 0) return give_up("chmod");
  if (!write_all(file.get(), text)) return give_up("write");
  // Without it a crash could leave the new name on an empty file.
  if (::fsync(file.get()) < 0) return give_up("sync");
  if (::rename(temporary.c_str(), path.c_str()) < 0) return give_up("rename");
  return {};
}

}  // namespace belljar
