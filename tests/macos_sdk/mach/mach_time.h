#pragma once
#include <stdint.h>

extern "C" {
struct mach_timebase_info {
  uint32_t numer;
  uint32_t denom;
};
typedef struct mach_timebase_info mach_timebase_info_data_t;
int mach_timebase_info(struct mach_timebase_info*);
}
