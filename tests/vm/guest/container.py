"""Run a command as an unprivileged container would: container.py root|guest NAME=VALUE... command

Its own user (0..65535 -> 100000..), mount, pid, net, ipc, uts and cgroup namespaces, the root an
idmapped copy of the machine's, read-only cgroups, and Docker's capabilities and covers over parts of
/proc. Root here may not mount, so it needs a user namespace for that as everybody does, in which the
covers are locked and the kernel's mount_too_revealing() refuses every new /proc. That is what
containers do to a sandbox started inside them.

Not done: Docker's seccomp filter, which also refuses user namespaces (the configuration "no-userns").
"""

import ctypes
import os
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)

SYS_OPEN_TREE, SYS_MOVE_MOUNT, SYS_MOUNT_SETATTR, SYS_PIVOT_ROOT = 428, 429, 442, 155
AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE = -100, 0x1000, 0x8000
OPEN_TREE_CLONE, MOVE_MOUNT_F_EMPTY_PATH, MOUNT_ATTR_IDMAP = 1, 4, 0x00100000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 0x20, 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
NEW_USER, NEW_NS, NEW_PID, NEW_NET = 0x10000000, 0x00020000, 0x20000000, 0x40000000
NEW_IPC, NEW_UTS, NEW_CGROUP = 0x08000000, 0x04000000, 0x02000000

FIRST_ID, IDS = 100000, 65536
COVERED_FILES = ("/proc/kcore", "/proc/keys", "/proc/timer_list")
COVERED_FOLDERS = ("/proc/scsi", "/proc/acpi")
READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")

PR_CAPBSET_DROP = 24
# chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service net_raw sys_chroot
# mknod audit_write setfcap
CAPABILITIES = {0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31}


def check(result: int, what: str) -> int:
    if result < 0:
        error = ctypes.get_errno()
        sys.exit(f"container: {what}: {os.strerror(error)}")
    return result


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    check(
        libc.mount(source.encode(), target.encode(), kind and kind.encode(), flags, data.encode()),
        f"mount {kind or 'bind'} on {target}",
    )


def mapped_child() -> int:
    """A process in the new user namespace, with its ids mapped; the caller kills it."""
    ready_r, ready_w = os.pipe()
    child = os.fork()
    if child == 0:
        check(libc.unshare(NEW_USER), "unshare user")
        os.write(ready_w, b"x")
        while True:
            os.read(0, 1) or libc.pause()
    os.read(ready_r, 1)
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{child}/{name}", "w") as file:
            file.write(f"0 {FIRST_ID} {IDS}")
    return child


def idmapped_root(user_namespace: int, target: str) -> None:
    """The machine's root at `target`, its files owned by the container's ids."""
    tree = check(libc.syscall(SYS_OPEN_TREE, AT_FDCWD, b"/", OPEN_TREE_CLONE), "open_tree /")
    attributes = struct.pack("QQQQ", MOUNT_ATTR_IDMAP, 0, 0, user_namespace)
    check(
        libc.syscall(SYS_MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, attributes, len(attributes)),
        "idmap /",
    )
    check(
        libc.syscall(SYS_MOVE_MOUNT, tree, b"", AT_FDCWD, target.encode(), MOVE_MOUNT_F_EMPTY_PATH),
        f"move_mount {target}",
    )


def set_up_root(root: str) -> None:
    """Inside all namespaces: what a container runtime mounts."""
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount(root, root, None, MS_BIND)  # the one we came with is locked, and pivot_root refuses it
    mount("proc", f"{root}/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount("sysfs", f"{root}/sys", "sysfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount("cgroup2", f"{root}/sys/fs/cgroup", "cgroup2", MS_RDONLY | MS_NOSUID | MS_NODEV)
    mount("tmpfs", f"{root}/dev", "tmpfs", MS_NOSUID, "mode=755")
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        open(f"{root}/dev/{name}", "w").close()
        mount(f"/dev/{name}", f"{root}/dev/{name}", None, MS_BIND)
    os.mkdir(f"{root}/dev/pts")
    mount("devpts", f"{root}/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=666")
    os.symlink("pts/ptmx", f"{root}/dev/ptmx")
    for name, target in {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}.items():
        os.symlink(f"/proc/self/fd{target}", f"{root}/dev/{name}")
    os.mkdir(f"{root}/dev/shm")
    for name, mode in {"dev/shm": "1777", "tmp": "1777", "run": "755"}.items():
        mount("tmpfs", f"{root}/{name}", "tmpfs", MS_NOSUID | MS_NODEV, f"mode={mode}")

    os.chdir(root)
    check(libc.syscall(SYS_PIVOT_ROOT, b".", b"."), "pivot_root")
    check(libc.umount2(b".", MNT_DETACH), "umount the old root")
    os.chdir("/")

    for path in filter(os.path.exists, COVERED_FILES):
        mount("/dev/null", path, None, MS_BIND)
    for path in filter(os.path.exists, COVERED_FOLDERS):
        mount("tmpfs", path, "tmpfs", MS_RDONLY)
    for path in filter(os.path.exists, READ_ONLY):
        mount(path, path, None, MS_BIND | MS_REC)
        mount(path, path, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)


def drop_capabilities() -> None:
    """From the bounding set, so they are gone at the next exec."""
    with open("/proc/sys/kernel/cap_last_cap") as file:
        last = int(file.read())
    for capability in set(range(last + 1)) - CAPABILITIES:
        check(libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0), f"drop capability {capability}")


def run(user: str, command: list[str]) -> int:
    root = "/mnt"
    keeper = mapped_child()
    user_namespace = os.open(f"/proc/{keeper}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    check(libc.unshare(NEW_NS), "unshare mounts")
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    idmapped_root(user_namespace, root)
    check(libc.setns(user_namespace, NEW_USER), "setns user")
    os.kill(keeper, 9)
    os.waitpid(keeper, 0)
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    check(
        libc.unshare(NEW_NS | NEW_PID | NEW_NET | NEW_IPC | NEW_UTS | NEW_CGROUP),
        "unshare everything else",
    )
    child = os.fork()
    if child == 0:
        set_up_root(root)
        os.system("ip link set lo up; ip address add 10.99.0.1/24 dev lo; ip route add default dev lo")
        first = os.fork()
        if first == 0:
            name, number = ("root", 0) if user == "root" else ("guest", 1000)
            home = "/root" if user == "root" else "/home/guest"
            drop_capabilities()
            os.setgroups([])
            os.setresgid(number, number, number)
            os.setresuid(number, number, number)
            names = {"HOME": home, "USER": name, "LOGNAME": name}
            os.execve("/usr/bin/env", ["env", *command], names)
        while True:  # process 1 of the container
            pid, status = os.wait()
            if pid == first:
                os._exit(shell_status(status))
    return shell_status(os.waitpid(child, 0)[1])


def shell_status(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    sys.exit(run(sys.argv[1], sys.argv[2:]))
