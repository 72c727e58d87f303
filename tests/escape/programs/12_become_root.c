// Run as a set-uid root program: says who it became.
#include "attempt.h"

int main(void) {
  if (geteuid() == 0) {
    escaped("euid_0");
  } else {
    stopped_by("euid_0", "EPERM");
  }
  attempt("setuid_0", setuid(0));
  attempt("setresuid_0", setresuid(0, 0, 0));
  return done();
}
