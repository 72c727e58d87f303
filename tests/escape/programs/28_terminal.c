// Types into the caller's terminal, for the shell to run after us.
#include "attempt.h"

#include <sys/ioctl.h>

static void type(const char* what, int fd) {
  char c = 'X';
  attempt(what, fd < 0 ? -1 : ioctl(fd, TIOCSTI, &c));
}

int main(void) {
  char c = 'X';
  char subcode = 6; /* shift state: TIOCLINUX on a pty is ENOTTY, once it is let in */
  type("tiocsti_stdin", 0);
  type("tiocsti_stdout", 1);
  type("tiocsti_dev_tty", open("/dev/tty", O_RDWR));
  type("tiocsti_reopened", open("/proc/self/fd/0", O_RDWR | O_NOCTTY));
  // The kernel takes 32 bits of the request.
  attempt("tiocsti_high_bits", syscall(SYS_ioctl, 0, 0x100000000ull | TIOCSTI, &c));
  attempt_harmless("tioclinux", ioctl(0, TIOCLINUX, &subcode), ENOTTY);
  attempt_harmless("tioclinux_high_bits",
                   syscall(SYS_ioctl, 0, 0x100000000ull | TIOCLINUX, &subcode), ENOTTY);
  // After this nobody else can open the terminal.
  attempt("tiocexcl", ioctl(0, TIOCEXCL));
  ioctl(0, TIOCNXCL);
  return done();
}
