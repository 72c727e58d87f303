// A Mac has 64 bits; this machine's C headers do not know the processor.
#define __WORDSIZE 64
#define __WORDSIZE_TIME64_COMPAT32 0
