// The same kernel through another door: 32-bit and x32 calls have other numbers, so
// a filter on numbers alone would look at the wrong ones.
#include "attempt.h"

#if defined(__x86_64__)
static long by_int80(void) {
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L /* getpid */) : "memory");
  if (result < 0) errno = (int)-result;
  return result < 0 ? -1 : result;
}
static long mount_by_int80(void) {
  long result;
  __asm__ volatile("int $0x80"
                   : "=a"(result)
                   : "a"(21L /* mount */), "b"(0L), "c"(0L), "d"(0L), "S"(0L), "D"(0L)
                   : "memory");
  errno = (int)-result;
  return errno == EFAULT || errno == EINVAL || errno == ENOENT ? 0 : -1;
}
static long by_x32(void) { return syscall(0x40000000 + SYS_getpid); }
static long unshare_by_x32(void) { return syscall(0x40000000 + SYS_unshare, 0); }
#endif

int main(void) {
#if defined(__x86_64__)
  attempt_in_child("int80_getpid", by_int80);
  attempt_in_child("int80_mount", mount_by_int80);
  attempt_in_child("x32_getpid", by_x32);
  attempt_in_child("x32_unshare", unshare_by_x32);
#endif
  return done();
}
