#include "base/clone.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace belljar {
namespace {

// The child comes back from the system call on an empty stack, so nothing the
// compiler keeps on the old one may be used: the two values it needs travel in
// registers that the kernel preserves.
long clone3_and_call(clone_args* args, CloneFunction function, void* argument) {
#if defined(__x86_64__)
  long result = 0;
  register CloneFunction fn asm("r12") = function;
  register void* arg asm("r13") = argument;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "mov %%r13, %%rdi\n\t"
      "call *%%r12\n\t"
      "ud2\n"
      "1:"
      : "=a"(result)
      : "0"(SYS_clone3), "D"(args), "S"(sizeof *args), "r"(fn), "r"(arg)
      : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = SYS_clone3;
  register long x0 asm("x0") = reinterpret_cast<long>(args);
  register long x1 asm("x1") = sizeof *args;
  register CloneFunction fn asm("x20") = function;
  register void* arg asm("x21") = argument;
  asm volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, xzr\n\t"
      "mov x0, x21\n\t"
      "blr x20\n\t"
      "brk #0\n"
      "1:"
      : "+r"(x0)
      : "r"(x8), "r"(x1), "r"(fn), "r"(arg)
      : "memory");
  return x0;
#else
#error "belljar knows x86_64 and aarch64"
#endif
}

}  // namespace

long raw_clone_sharing_memory(clone_args args, CloneFunction function, void* argument) noexcept {
  args.flags |= CLONE_VM;
  return clone3_and_call(&args, function, argument);
}

bool can_clone() noexcept {
  return ::syscall(SYS_clone3, nullptr, 0) >= 0 || errno != ENOSYS;  // EINVAL: it was looked at
}

Result<int> clone_sharing_memory(clone_args args, CloneFunction function, void* argument) {
  const long pid = raw_clone_sharing_memory(args, function, argument);
  // The filter of a jar answers so: what a guest clones must be looked at in `clone`.
  if (pid == -ENOSYS)
    return fail("belljar cannot run inside a jar", 0,
                "if this is none, clone3 is missing: it needs Linux 5.3, and where a container's "
                "filter refuses it, a newer one");
  if (pid < 0) return fail("clone3", static_cast<int>(-pid));
  return static_cast<int>(pid);
}

}  // namespace belljar
