// What every hostile program says, one line for each thing it tries:
//   ESCAPED <what>           it happened
//   stopped <what> <ERRNO>   it did not
// and `done` at the end, so that a program which died half way is not taken for
// one that was stopped. <what> has no blanks. Nothing here judges: the test looks
// at the target, and compares with the same program run without a sandbox.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static inline void escaped(const char* what) {
  printf("ESCAPED %s\n", what);
  fflush(stdout);
}

static inline void stopped_by(const char* what, const char* why) {
  printf("stopped %s %s\n", what, why);
  fflush(stdout);
}

static inline void stopped(const char* what, int err) {
  const char* name = strerrorname_np(err);
  stopped_by(what, name ? name : "?");
}

// `result` as a system call gives it: negative means errno says why.
static inline bool attempt(const char* what, long result) {
  int err = errno;
  if (result >= 0) {
    escaped(what);
  } else {
    stopped(what, err);
  }
  return result >= 0;
}

// For calls that must not be made in earnest (reboot, clocks, swap): the argument
// is one that the kernel refuses with `harmless`, but only after it has let the
// caller in. So that errno means "would have happened".
static inline void attempt_harmless(const char* what, long result, int harmless) {
  if (result < 0 && errno == harmless) {
    escaped(what);
  } else {
    attempt(what, result);
  }
}

// In a child, for what may be answered with a signal.
static inline void attempt_in_child(const char* what, long (*deed)(void)) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    errno = 0;
    long result = deed();
    _exit(result >= 0 ? 0 : errno);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    stopped(what, errno);
  } else if (WIFSIGNALED(status)) {
    stopped_by(what, sigabbrev_np(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) == 0) {
    escaped(what);
  } else {
    stopped(what, WEXITSTATUS(status));
  }
}

static inline int done(void) {
  puts("done");
  return 0;
}

// An argument that has to be there.
static inline const char* argument(int argc, char** argv, int i) {
  if (i >= argc) {
    fprintf(stderr, "%s: argument %d is missing\n", argv[0], i);
    exit(99);
  }
  return argv[i];
}
