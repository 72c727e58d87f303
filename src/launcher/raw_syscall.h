// System calls without a C library, for init and what joins a jar. A result between -4095 and
// -1 is an errno. Also the few kernel structures whose headers need a libc.
#pragma once

#include <asm/errno.h>
#include <asm/ioctls.h>
#include <linux/mman.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

struct KernelIovec {
  void* base;
  std::size_t size;
};
struct KernelMsghdr {
  void* name;
  int name_size;
  KernelIovec* iov;
  std::size_t iov_count;
  void* control;
  std::size_t control_size;
  unsigned flags;
};
struct KernelCmsg {
  std::size_t size;
  int level;
  int type;
};
struct KernelPollfd {
  int fd;
  short events;
  short revents;
};

#ifndef MSG_CMSG_CLOEXEC
#define MSG_CMSG_CLOEXEC 0x40000000
#endif
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0x4000
#endif
#ifndef SCM_RIGHTS
#define SCM_RIGHTS 1
#endif
#ifndef SOCK_CLOEXEC
#define SOCK_CLOEXEC O_CLOEXEC
#define SOCK_NONBLOCK O_NONBLOCK
#endif

inline long raw_syscall(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  long result = 0;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc #0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return x0;
#else
#error "belljar knows x86_64 and aarch64"
#endif
}

template <class T>
long as_long(T value) {
  if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<long>(value);
  else
    return static_cast<long>(value);
}
inline long as_long(std::nullptr_t) { return 0; }

template <class... Arguments>
long sys(long number, Arguments... arguments) {
  const long a[6] = {as_long(arguments)...};
  return raw_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
