#include "broker/guest_thread.h"

#include <sys/syscall.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "base/file.h"

namespace belljar::broker {
namespace {

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL  // Linux 6.9
#endif

// The process that a thread belongs to.
pid_t process_of(pid_t thread) {
  const std::string status = read_text("/proc/" + std::to_string(thread) + "/status").value_or("");
  const std::size_t at = status.find("\nTgid:");
  return at == status.npos ? -1
                           : static_cast<pid_t>(std::strtol(status.c_str() + at + 6, nullptr, 10));
}

}  // namespace

Fd take_descriptor(pid_t thread, int number) {
  Fd process(static_cast<int>(::syscall(SYS_pidfd_open, thread, PIDFD_THREAD)));
  if (!process) process = Fd(static_cast<int>(::syscall(SYS_pidfd_open, process_of(thread), 0)));
  if (!process) return {};
  return Fd(static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), number, 0)));
}

bool read_memory(pid_t thread, std::uint64_t from, void* into, std::size_t size) {
  const iovec local{into, size};
  const iovec remote{reinterpret_cast<void*>(from), size};
  const ssize_t n = ::process_vm_readv(thread, &local, 1, &remote, 1, 0);
  if (n >= 0 && n != static_cast<ssize_t>(size)) errno = EFAULT;
  return n == static_cast<ssize_t>(size);
}

}  // namespace belljar::broker
