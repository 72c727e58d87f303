#include "launcher/stdio.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/file.h"
#include "base/syscall.h"

namespace belljar::launcher {
namespace {

constexpr std::size_t kChunk = 16 << 10;
// A guest that writes without end must not keep us from looking at its limits.
constexpr int kChunksAtOnce = 64;
// More than any pipe holds: its size is at most 1 MiB without privilege.
constexpr int kChunksInPipe = 1024;

// A sealed file in memory and no pipe, since feeding a pipe takes a loop, and a guest
// that does not read would have SIGPIPE raised in the caller. The seals matter: memory
// that a guest could add here would be in no count of ours.
Result<Fd> file_of(const std::string& text) {
  Fd file(::memfd_create("belljar-input", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) return fail("make the command's input", errno);
  if (!write_all(file.get(), text)) return fail("write the command's input", errno);
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (::fcntl(file.get(), F_ADD_SEALS, kSeals) < 0 || ::lseek(file.get(), 0, SEEK_SET) < 0)
    return fail("seal the command's input", errno);
  return file;
}

Result<Capture> capture(Fd& guests_end, std::size_t limit) {
  Pipe pipe = TRY(make_pipe());
  if (::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK) < 0) return fail("make a pipe", errno);
  guests_end = std::move(pipe.write);
  return Capture(std::move(pipe.read), limit);
}

}  // namespace

bool Capture::read_once() {
  char chunk[kChunk];
  ssize_t n = retry([&] { return ::read(pipe_.get(), chunk, sizeof chunk); });
  if (n <= 0) {
    if (n == 0 || errno != EAGAIN) pipe_.reset();
    return false;
  }
  const auto size = static_cast<std::size_t>(n);
  const std::size_t room = limit_ > text.size() ? limit_ - text.size() : 0;
  text.append(chunk, std::min(size, room));
  dropped += size - std::min(size, room);
  return true;
}

void Capture::read_some() {
  for (int i = 0; i < kChunksAtOnce && pipe_ && read_once(); ++i) {
  }
}

void Capture::read_rest() {
  for (int i = 0; i < kChunksInPipe && pipe_ && read_once(); ++i) {
  }
}

Result<Stdio> open_stdio(const belljar::Command& command) {
  Stdio stdio;
  if (command.in_fd < 0)
    stdio.own[0] =
        TRY(command.input.empty() ? open_path("/dev/null", O_RDONLY) : file_of(command.input));
  if (command.out_fd < 0) stdio.out = TRY(capture(stdio.own[1], command.max_output));
  if (command.err_fd < 0) stdio.err = TRY(capture(stdio.own[2], command.max_output));
  const int given[3] = {command.in_fd, command.out_fd, command.err_fd};
  for (std::size_t i = 0; i < 3; ++i) stdio.fds[i] = given[i] < 0 ? stdio.own[i].get() : given[i];
  return stdio;
}

}  // namespace belljar::launcher
