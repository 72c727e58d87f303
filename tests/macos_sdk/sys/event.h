#pragma once
#include <stdint.h>
#include <time.h>

extern "C" {
struct kevent {
  uintptr_t ident;
  int16_t filter;
  uint16_t flags;
  uint32_t fflags;
  intptr_t data;
  void* udata;
};

#define EVFILT_READ (-1)
#define EVFILT_WRITE (-2)
#define EVFILT_PROC (-5)
#define EV_ADD 0x0001
#define NOTE_EXIT 0x80000000U
#define EV_SET(event, a, b, c, d, e, f) \
  do {                                  \
    struct kevent* to_set = (event);    \
    to_set->ident = (a);                \
    to_set->filter = (b);               \
    to_set->flags = (c);                \
    to_set->fflags = (d);               \
    to_set->data = (e);                 \
    to_set->udata = (f);                \
  } while (0)

int kqueue(void);
int kevent(int, const struct kevent*, int, struct kevent*, int, const struct timespec*);
}
