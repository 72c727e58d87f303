#include "layers/syscall_groups.h"

namespace belljar::seccomp {
namespace {

// ---- denied ----------------------------------------------------------------

// vhangup takes the terminal away from whoever has it.
constexpr const char* kMounts[] = {
    "mount",      "umount2", "pivot_root", "chroot",  "vhangup", "open_tree",
    "move_mount", "fsopen",  "fsconfig",   "fsmount", "fspick",  "mount_setattr",
};

// clone with a namespace flag is refused too: syscall_arguments.cc.
constexpr const char* kNamespaces[] = {
    "unshare",
    "setns",
};

// pidfd_getfd takes a descriptor out of another process; kcmp tells how kernel
// objects lie in memory. move_pages and migrate_pages take a pid; for its own
// memory a program has mbind. process_madvise is not here: for another process
// the kernel asks for CAP_SYS_NICE.
constexpr const char* kOtherProcesses[] = {
    "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd",
    "kcmp",   "move_pages",       "migrate_pages",
};

// open_by_handle_at opens by inode number, past every path rule. Without it the
// handles of name_to_handle_at are only numbers, so that one is not here.
// lookup_dcookie is a profiler's way to paths outside the view.
constexpr const char* kPaths[] = {
    "open_by_handle_at",
    "fanotify_init",
    "fanotify_mark",
    "lookup_dcookie",
};

constexpr const char* kKernelCode[] = {
    "init_module", "finit_module",    "delete_module", "create_module",   "query_module",
    "kexec_load",  "kexec_file_load", "bpf",           "get_kernel_syms",
};

// io_uring opens files and sockets that no filter sees. userfaultfd stops the
// kernel in the middle of a copy, the helper of most races. memfd_secret is
// memory that cannot be read to account for it.
constexpr const char* kRiskySubsystems[] = {
    "io_uring_setup",  "io_uring_enter", "io_uring_register",
    "perf_event_open", "userfaultfd",    "memfd_secret",
};

// Keyrings are per user and not per namespace: two jars could talk through one.
constexpr const char* kKeyrings[] = {"add_key", "keyctl", "request_key"};

constexpr const char* kHardware[] = {"ioperm", "iopl", "modify_ldt"};

constexpr const char* kMachine[] = {
    "reboot",      "swapon", "swapoff",     "acct",          "quotactl",
    "quotactl_fd", "syslog", "sethostname", "setdomainname", "nfsservctl",
};

constexpr const char* kClocks[] = {"settimeofday", "clock_settime", "clock_adjtime", "adjtimex"};

constexpr const char* kObsolete[] = {"_sysctl", "sysfs", "uselib", "ustat"};

constexpr Group kDenied[] = {
    {"mounts", "the view is made of mounts", kMounts},
    {"namespaces", "a new user namespace brings every capability in it", kNamespaces},
    {"other processes", "reads, writes or borrows from a process that is not the guest's own",
     kOtherProcesses},
    {"paths", "reaches or watches files without resolving a path in the view", kPaths},
    {"kernel code", "puts code into the kernel", kKernelCode},
    {"risky subsystems", "large, young, reachable without privilege", kRiskySubsystems},
    {"keyrings", "shared by all processes of a user, whatever their namespace", kKeyrings},
    {"hardware", "i/o ports and segment descriptors", kHardware},
    {"machine", "settings of the whole machine", kMachine},
    {"clocks", "the time of the whole machine", kClocks},
    {"obsolete", "no program of this century calls them", kObsolete},
};

// ---- absent ----------------------------------------------------------------

constexpr const char* kStructArguments[] = {
    "clone3",   // flags in memory; glibc and Go fall back to clone
    "openat2",  // mode in memory; tar and libpathrs fall back to openat
};

// Contexts are counted for the whole machine (fs.aio-max-nr) and for nobody in it. InnoDB and
// nginx go on without them when the kernel has none.
constexpr const char* kMachineCounts[] = {"io_setup"};

constexpr Group kAbsent[] = {
    {"arguments in memory", "a filter cannot read what a pointer points to", kStructArguments},
    {"counted for the machine", "one jar could take what all others need", kMachineCounts},
};

constexpr const char* kMemfd[] = {"memfd_create"};

// ---- allowed ---------------------------------------------------------------

constexpr const char* kFileContents[] = {
    "read",      "write",           "pread64",         "pwrite64",  "readv",
    "writev",    "preadv",          "pwritev",         "preadv2",   "pwritev2",
    "lseek",     "close",           "sendfile",        "splice",    "tee",
    "truncate",  "ftruncate",       "fallocate",       "fsync",     "fdatasync",
    "sync",      "syncfs",          "sync_file_range", "fadvise64", "flock",
    "readahead", "copy_file_range", "close_range",     "cachestat",
};

constexpr const char* kDescriptors[] = {
    "dup",           "dup2",        "dup3",         "fcntl",      "ioctl",     "pipe",
    "pipe2",         "poll",        "ppoll",        "select",     "pselect6",  "eventfd",
    "eventfd2",      "signalfd",    "signalfd4",    "epoll_wait", "epoll_ctl", "epoll_create",
    "epoll_create1", "epoll_pwait", "epoll_pwait2",
};

constexpr const char* kWatches[] = {
    "inotify_init",
    "inotify_init1",
    "inotify_add_watch",
    "inotify_rm_watch",
};

// mknod makes FIFOs; devices are refused by argument.
constexpr const char* kFileNames[] = {
    "open",       "openat",    "creat",      "access",     "faccessat", "faccessat2", "stat",
    "lstat",      "fstat",     "newfstatat", "statx",      "statfs",    "fstatfs",    "getdents",
    "getdents64", "getcwd",    "chdir",      "fchdir",     "mkdir",     "mkdirat",    "rmdir",
    "unlink",     "unlinkat",  "rename",     "renameat",   "renameat2", "link",       "linkat",
    "symlink",    "symlinkat", "readlink",   "readlinkat", "umask",     "mknod",      "mknodat",
};

// Landlock does not cover these; the view and the file system's owner do.
constexpr const char* kFileAttributes[] = {
    "chmod",     "fchmod",     "fchmodat",   "fchmodat2",   "chown",        "fchown",
    "lchown",    "fchownat",   "utime",      "utimes",      "futimesat",    "utimensat",
    "setxattr",  "lsetxattr",  "fsetxattr",  "getxattr",    "lgetxattr",    "fgetxattr",
    "listxattr", "llistxattr", "flistxattr", "removexattr", "lremovexattr", "fremovexattr",
};

// Go and the JVM call mincore at start, V8 the pkey calls.
constexpr const char* kMemory[] = {
    "brk",           "mmap",         "munmap",     "mremap",           "mprotect",   "madvise",
    "msync",         "mincore",      "mlock",      "mlock2",           "munlock",    "mlockall",
    "munlockall",    "memfd_create", "membarrier", "map_shadow_stack", "pkey_alloc", "pkey_free",
    "pkey_mprotect",
};

constexpr const char* kNuma[] = {
    "mbind",
    "get_mempolicy",
    "set_mempolicy",
    "set_mempolicy_home_node",
};

constexpr const char* kProcesses[] = {
    "clone",  "fork",    "vfork",  "execve",  "execveat",   "exit",        "exit_group",
    "wait4",  "waitid",  "getpid", "getppid", "gettid",     "getpgid",     "getpgrp",
    "getsid", "setpgid", "setsid", "prctl",   "pidfd_open", "personality", "pidfd_send_signal",
};

constexpr const char* kThreads[] = {
    "futex",           "futex_wait",      "futex_wake",
    "futex_waitv",     "futex_requeue",   "rseq",
    "arch_prctl",      "set_tid_address", "set_robust_list",
    "get_robust_list", "restart_syscall",
};

constexpr const char* kSignals[] = {
    "kill",          "tkill",           "tgkill",
    "rt_sigaction",  "rt_sigprocmask",  "rt_sigreturn",
    "rt_sigpending", "rt_sigsuspend",   "rt_sigtimedwait",
    "sigaltstack",   "rt_sigqueueinfo", "rt_tgsigqueueinfo",
    "pause",
};

// They can only lower what the guest has, which is nothing: no capabilities,
// no_new_privs, and one id in its namespace.
constexpr const char* kIdentity[] = {
    "getuid",    "geteuid",   "getgid",   "getegid",  "getresuid", "getresgid",
    "getgroups", "setuid",    "setgid",   "setreuid", "setregid",  "setresuid",
    "setresgid", "setgroups", "setfsuid", "setfsgid", "capget",    "capset",
};

constexpr const char* kOwnSandbox[] = {
    "seccomp",
    "landlock_create_ruleset",
    "landlock_add_rule",
    "landlock_restrict_self",
};

// Raising any of these is refused by the kernel without a capability.
constexpr const char* kScheduling[] = {
    "getpriority",
    "setpriority",
    "ioprio_get",
    "ioprio_set",
    "sched_yield",
    "sched_getparam",
    "sched_setparam",
    "sched_getattr",
    "sched_setattr",
    "sched_getscheduler",
    "sched_setscheduler",
    "sched_getaffinity",
    "sched_setaffinity",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "sched_rr_get_interval",
};

constexpr const char* kResources[] = {
    "getrlimit", "setrlimit", "prlimit64", "getrusage", "getcpu",
};

constexpr const char* kTime[] = {
    "time",           "gettimeofday",    "times",           "clock_gettime",    "clock_getres",
    "nanosleep",      "clock_nanosleep", "alarm",           "getitimer",        "setitimer",
    "timer_create",   "timer_settime",   "timer_gettime",   "timer_getoverrun", "timer_delete",
    "timerfd_create", "timerfd_settime", "timerfd_gettime",
};

constexpr const char* kSystem[] = {"uname", "sysinfo", "getrandom"};

constexpr const char* kSockets[] = {
    "socket",   "socketpair", "connect",     "bind",        "listen",     "accept",
    "accept4",  "shutdown",   "sendto",      "recvfrom",    "sendmsg",    "recvmsg",
    "sendmmsg", "recvmmsg",   "getsockname", "getpeername", "setsockopt", "getsockopt",
};

// Per ipc namespace. PostgreSQL, Python's multiprocessing, MPI.
constexpr const char* kIpc[] = {
    "shmget",  "shmat",      "shmctl",    "shmdt",        "semget",          "semop",
    "semctl",  "semtimedop", "msgget",    "msgsnd",       "msgrcv",          "msgctl",
    "mq_open", "mq_unlink",  "mq_notify", "mq_timedsend", "mq_timedreceive", "mq_getsetattr",
};

constexpr Group kAllowed[] = {
    {"file contents", "reading and writing what is open", kFileContents},
    {"descriptors", "pipes, polling, ioctls of what is open", kDescriptors},
    {"watches", "node, cargo watch and test runners wait for changes", kWatches},
    {"file names", "the view and landlock decide which", kFileNames},
    {"file attributes", "tar, rsync, git and package managers set them", kFileAttributes},
    {"memory", "the guest's own address space", kMemory},
    {"numa", "the jvm, OpenBLAS and PyTorch place their own memory", kNuma},
    {"processes", "in the jar, and no other can be named", kProcesses},
    {"threads", "locks, and what a thread tells the kernel of itself", kThreads},
    {"signals", "between the jar's processes", kSignals},
    {"identity", "programs ask who they are, and drop what they have", kIdentity},
    {"own sandbox", "a guest may be stricter with itself: browsers do", kOwnSandbox},
    {"scheduling", "nice, ionice, taskset, thread pools", kScheduling},
    {"resources", "asking for limits and use, lowering limits", kResources},
    {"time", "reading clocks and waiting", kTime},
    {"system", "what machine this is, and random bytes", kSystem},
    {"sockets", "families are refused by argument, addresses by the network layer", kSockets},
    {"ipc", "of the jar's own namespace", kIpc},
};

// ---- architectures ---------------------------------------------------------

constexpr const char* kX8664Only[] = {
    "_sysctl",      "access",   "alarm",         "arch_prctl", "chmod",
    "chown",        "creat",    "create_module", "dup2",       "epoll_create",
    "epoll_wait",   "eventfd",  "fork",          "futimesat",  "get_kernel_syms",
    "getdents",     "getpgrp",  "inotify_init",  "ioperm",     "iopl",
    "lchown",       "link",     "lstat",         "mkdir",      "mknod",
    "modify_ldt",   "open",     "pause",         "pipe",       "poll",
    "query_module", "readlink", "rename",        "rmdir",      "select",
    "signalfd",     "stat",     "symlink",       "sysfs",      "time",
    "unlink",       "uselib",   "ustat",         "utime",      "utimes",
    "vfork",
};

}  // namespace

std::span<const Group> denied_groups() { return kDenied; }
std::span<const Group> absent_groups() { return kAbsent; }
std::span<const Group> allowed_groups() { return kAllowed; }
std::span<const char* const> memfd_calls() { return kMemfd; }
std::span<const char* const> x86_64_only_calls() { return kX8664Only; }

}  // namespace belljar::seccomp
