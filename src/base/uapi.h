// Kernel constants newer than Debian 12's headers (Linux 6.1, Landlock ABI 2).
// One file, so that raising the header baseline deletes lines here and nowhere else.
#pragma once

#include <linux/landlock.h>
#include <linux/memfd.h>
#include <linux/seccomp.h>

#include <cstdint>

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)  // ABI 3, Linux 6.2
#endif
#ifndef LANDLOCK_ACCESS_NET_BIND_TCP
#define LANDLOCK_ACCESS_NET_BIND_TCP (1ULL << 0)  // ABI 4, Linux 6.7
#define LANDLOCK_ACCESS_NET_CONNECT_TCP (1ULL << 1)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)  // ABI 5, Linux 6.10
#endif
#ifndef LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
#define LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)  // ABI 6, Linux 6.12
#define LANDLOCK_SCOPE_SIGNAL (1ULL << 1)
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U  // Linux 6.3
#endif
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)  // Linux 6.6
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83  // Linux 6.16
#endif

namespace belljar {

// struct landlock_ruleset_attr as of ABI 6; older kernels take a prefix of it.
struct LandlockRuleset {
  std::uint64_t handled_access_fs;
  std::uint64_t handled_access_net;  // ABI 4
  std::uint64_t scoped;              // ABI 6
};

}  // namespace belljar
