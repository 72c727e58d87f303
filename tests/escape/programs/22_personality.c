// Weakens what the processor and the loader defend.
#include "attempt.h"

#include <sys/personality.h>

static long no_randomize(void) { return personality(ADDR_NO_RANDOMIZE); }
static long read_implies_exec(void) { return personality(READ_IMPLIES_EXEC); }
static long zero_page(void) { return personality(MMAP_PAGE_ZERO); }
static long linux32(void) { return personality(PER_LINUX32); }
#if defined(__x86_64__)
static long ldt(void) {
  char table[64];
  return syscall(SYS_modify_ldt, 0, table, sizeof table);
}
static long port_access(void) { return syscall(SYS_iopl, 3); }
#endif

int main(void) {
  attempt_in_child("no_randomize", no_randomize);
  attempt_in_child("read_implies_exec", read_implies_exec);
  attempt_in_child("mmap_page_zero", zero_page);
  attempt_in_child("linux32", linux32);
#if defined(__x86_64__)
  attempt_in_child("modify_ldt", ldt);
  attempt_in_child("iopl", port_access);
#endif
  return done();
}
