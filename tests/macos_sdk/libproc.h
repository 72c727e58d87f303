#pragma once
#include <stdint.h>
#include <sys/types.h>

extern "C" {
typedef void* rusage_info_t;
struct rusage_info_v2 {
  uint8_t ri_uuid[16];
  uint64_t ri_user_time;
  uint64_t ri_system_time;
  uint64_t ri_pkg_idle_wkups;
  uint64_t ri_interrupt_wkups;
  uint64_t ri_pageins;
  uint64_t ri_wired_size;
  uint64_t ri_resident_size;
  uint64_t ri_phys_footprint;
  uint64_t ri_proc_start_abstime;
  uint64_t ri_proc_exit_abstime;
  uint64_t ri_child_user_time;
  uint64_t ri_child_system_time;
  uint64_t ri_child_pkg_idle_wkups;
  uint64_t ri_child_interrupt_wkups;
  uint64_t ri_child_pageins;
  uint64_t ri_child_elapsed_abstime;
  uint64_t ri_diskio_bytesread;
  uint64_t ri_diskio_byteswritten;
};
#define RUSAGE_INFO_V2 2
#define PROC_UID_ONLY 4

int proc_pid_rusage(int, int, rusage_info_t*);
int proc_listpgrppids(pid_t, void*, int);
int proc_listpids(uint32_t, uint32_t, void*, int);
}
