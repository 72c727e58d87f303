// Opens descriptors until told to stop. argv: how many to call an escape.
#include "attempt.h"

int main(int argc, char** argv) {
  int too_many = atoi(argument(argc, argv, 1));
  for (int i = 0; i < too_many; ++i) {
    if (dup(0) < 0) {
      stopped("descriptors", errno);
      return done();
    }
  }
  escaped("descriptors");
  return done();
}
