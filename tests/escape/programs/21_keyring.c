// Leaves a text in the user's keyring, or looks for it. argv: put|get|drop, text.
#include "attempt.h"

int main(int argc, char** argv) {
  const char* how = argument(argc, argv, 1);
  const char* text = argument(argc, argv, 2);
  const long kUserKeyring = -4;
  if (strcmp(how, "put") == 0) {
    attempt("put",
            syscall(SYS_add_key, "user", "belljar-escape", text, strlen(text), kUserKeyring));
    return done();
  }
  char found[256] = {0};
  if (strcmp(how, "drop") == 0) {
    long key = syscall(SYS_keyctl, 10, kUserKeyring, "user", "belljar-escape", 0);
    attempt("drop", syscall(SYS_keyctl, 9 /* unlink */, key, kUserKeyring));
    return done();
  }
  // Search the user's keyring, then read.
  long key = syscall(SYS_keyctl, 10, kUserKeyring, "user", "belljar-escape", 0);
  if (key >= 0) syscall(SYS_keyctl, 11, key, found, sizeof found - 1);
  if (attempt("get", key)) printf("%s\n", found);
  return done();
}
