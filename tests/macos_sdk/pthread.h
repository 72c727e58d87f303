#pragma once
#include_next <pthread.h>
// This machine's C++ library was configured with it.
extern "C" int pthread_cond_clockwait(pthread_cond_t*, pthread_mutex_t*, clockid_t,
                                      const struct timespec*);
