"""What the kernel lets this user do here, found by doing it. Prints one JSON object.

Each answer is "ok" or the name of the errno, so that a test can say which refusal it expects.
Runs in a test machine, from nothing but Python's standard library.
"""

import ctypes
import errno
import json
import os
import pathlib
import struct

libc = ctypes.CDLL(None, use_errno=True)

SYS_LANDLOCK_CREATE_RULESET, SYS_LANDLOCK_RESTRICT_SELF = 444, 446
SYS_OPEN_TREE, SYS_MOUNT_SETATTR, SYS_PIVOT_ROOT = 428, 442, 155
LANDLOCK_CREATE_RULESET_VERSION, LANDLOCK_ACCESS_FS_READ_FILE = 1, 4
PR_SET_NO_NEW_PRIVS = 38
NEW_USER, NEW_NS, NEW_PID = 0x10000000, 0x00020000, 0x20000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
AT_FDCWD, AT_EMPTY_PATH, OPEN_TREE_CLONE, MOUNT_ATTR_IDMAP = -100, 0x1000, 1, 0x00100000
MNT_DETACH = 2


def check(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def attempt(action) -> str:
    """In a process of its own, since most of this cannot be undone."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = action() or "ok"
        except OSError as error:
            answer = errno.errorcode.get(error.errno, str(error.errno))
        except BaseException as error:
            answer = repr(error)
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        answer = file.read()
    _, status = os.waitpid(child, 0)
    return answer or f"died: {status}"


def landlock_abi() -> int | str:
    try:
        return check(
            libc.syscall(SYS_LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_CREATE_RULESET_VERSION)
        )
    except OSError as error:
        return errno.errorcode[error.errno]


def landlock_denies() -> None:
    """A ruleset that allows no reading: after it, reading a file must fail."""
    open("/etc/passwd").close()  # the control
    handled = struct.pack("Q", LANDLOCK_ACCESS_FS_READ_FILE)
    ruleset = check(libc.syscall(SYS_LANDLOCK_CREATE_RULESET, handled, len(handled), 0))
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    check(libc.syscall(SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0))
    try:
        open("/etc/passwd").close()
    except PermissionError:
        return
    raise AssertionError("restricted, and still reads")


def new_user_namespace(flags: int = 0) -> None:
    uid, gid = os.getuid(), os.getgid()
    check(libc.unshare(NEW_USER | flags))
    pathlib.Path("/proc/self/setgroups").write_text("deny")
    pathlib.Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    pathlib.Path("/proc/self/gid_map").write_text(f"0 {gid} 1")


def mount_proc(enter) -> None:
    """In a new pid namespace, as a sandbox must; the mount goes with its namespace."""
    enter()
    check(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
    child = os.fork()
    if child == 0:
        failed = libc.mount(b"proc", b"/mnt", b"proc", 0, None) != 0
        os._exit(ctypes.get_errno() if failed else 0)
    if code := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        raise OSError(code, os.strerror(code))


def enter_user_and_mounts() -> None:
    new_user_namespace(NEW_NS | NEW_PID)


def enter_mounts_only() -> None:
    check(libc.unshare(NEW_NS | NEW_PID))


def pivot_root() -> None:
    if libc.unshare(NEW_NS) != 0:
        new_user_namespace(NEW_NS)
    check(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
    check(libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None))
    os.chdir("/tmp")
    check(libc.syscall(SYS_PIVOT_ROOT, b".", b"."))
    check(libc.umount2(b".", MNT_DETACH))
    if os.listdir("/"):
        raise AssertionError("the old root is still there")


def idmap_root() -> None:
    """An idmapped mount of the root disk, as belljar makes of a workspace when it runs as root."""
    ready_r, ready_w = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            check(libc.unshare(NEW_USER))
            os.write(ready_w, b"\0")
        except OSError as error:
            os.write(ready_w, bytes([error.errno]))
        libc.pause()
    try:
        if refused := os.read(ready_r, 1)[0]:
            raise OSError(refused, os.strerror(refused))
        for name in ("uid_map", "gid_map"):
            pathlib.Path(f"/proc/{child}/{name}").write_text("0 20000 1")
        namespace = os.open(f"/proc/{child}/ns/user", os.O_RDONLY)
        tree = check(libc.syscall(SYS_OPEN_TREE, AT_FDCWD, b"/", OPEN_TREE_CLONE))
        attributes = struct.pack("QQQQ", MOUNT_ATTR_IDMAP, 0, 0, namespace)
        check(libc.syscall(SYS_MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, attributes, 32))
    finally:
        os.kill(child, 9)


# --- cgroups: a limit counts when it bites --------------------------------------------------------


def own_cgroup() -> pathlib.Path:
    line = pathlib.Path("/proc/self/cgroup").read_text().strip()
    return pathlib.Path("/sys/fs/cgroup") / line.removeprefix("0::/")


def new_cgroup(**limits: str) -> pathlib.Path:
    """Beside our own, in the part of the tree that our parent was given; and we are in it."""
    folder = own_cgroup().parent / "probe"
    folder.mkdir(exist_ok=True)
    for name, value in limits.items():
        (folder / name.replace("_", ".", 1)).write_text(value)
    (folder / "cgroup.procs").write_text(str(os.getpid()))
    return folder


def pids_limit_bites() -> None:
    new_cgroup(pids_max="2")
    children = []
    try:
        for _ in range(3):
            child = os.fork()
            if child == 0:
                libc.pause()
            children.append(child)
    except BlockingIOError:
        return  # EAGAIN, as it should be
    finally:
        for child in children:
            os.kill(child, 9)
            os.waitpid(child, 0)
    raise AssertionError("pids.max is 2, and there are 4 processes")


def memory_limit_bites() -> None:
    """The child gets 24 MiB and touches 64."""
    home = own_cgroup()
    child = os.fork()
    if child == 0:
        try:
            new_cgroup(memory_max=str(24 << 20))
            b"x" * (64 << 20)
        except OSError as error:
            os._exit(error.errno)
        os._exit(255)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == 255:
        raise AssertionError("memory.max is 24 MiB, and there were 64")
    if code > 0:
        raise OSError(code, os.strerror(code))
    events = (home.parent / "probe" / "memory.events").read_text()
    if code != -9 or "oom_kill 1" not in events:
        raise AssertionError(f"ended with {code}, events {events!r}")


def cgroup_facts() -> dict:
    own = own_cgroup()
    controllers = own / "cgroup.controllers"
    return {
        "own": str(own),
        "controllers": controllers.read_text().split() if controllers.exists() else None,
        "pids": attempt(pids_limit_bites),
        "memory": attempt(memory_limit_bites),
    }


def facts() -> dict:
    return {
        "uid": os.getuid(),
        "kernel": os.uname().release,
        "landlock_abi": landlock_abi(),
        "landlock": attempt(landlock_denies),
        "userns": attempt(new_user_namespace),
        "proc_in_userns": attempt(lambda: mount_proc(enter_user_and_mounts)),
        "proc": attempt(lambda: mount_proc(enter_mounts_only)),
        "pivot_root": attempt(pivot_root),
        "idmap": attempt(idmap_root),
        "cgroup": cgroup_facts(),
    }


if __name__ == "__main__":
    print(json.dumps(facts()))
