# The fork server: an interpreter that has imported what sessions use, in a jar of its own, and
# forks into the jars of sessions. session/warm.h says how the jars lie; this is the inside.
#
#   engine -> here          "f" with one socket, of which this process keeps a copy and reads
#                           nothing: what a session is, only the fork for it ever knows
#   engine -> fork          one request (launcher/join.cc) with the descriptors; "g" if it waits
#   fork -> engine          "P" and a pidfd of the worker; after that "J" when it has joined
#                           or "F", an errno and the step that failed
#   here -> engine          4 bytes, the wait status, when the worker has ended
#
# Two forks make a worker, because a pid namespace is entered by being born in it. The first
# enters and ends at once; this process is its subreaper and so becomes the worker's parent.
# Between setns and the end of join() the fork has capabilities in a jar whose guests may be
# hostile: it imports nothing there, opens nothing, and is not dumpable.
#
# Runs with `part`, which reads from the control socket, among its globals. Python 3.9.
import ctypes
import gc
import importlib
import json
import os
import resource
import select
import signal
import site
import socket
import struct
import sys
import time

HEADER = struct.Struct("<QqIIII")  # launcher/join.cc
LIMIT = struct.Struct("<Qqq")  # RLIM_INFINITY is -1
SIZE = struct.Struct("<I")
STATUS = struct.Struct("<I")
FAILURE = struct.Struct("<i")
MAX_REQUEST = 1 << 20
MAX_FDS = 8
CONTROL = 3  # of a worker, and of this process
# In a fork, where nothing else is open but what a request brings.
STATUS_FD = 3
TOLD_FD = 4

PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_READ = 23
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_GET_NO_NEW_PRIVS = 39
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SECCOMP_MODE_FILTER = 2
CAPABILITY_VERSION_3 = 0x20080522
# The same on every architecture, as all calls since 424.
SYS_CLOSE_RANGE = 436
SYS_LANDLOCK_RESTRICT_SELF = 446

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4


class Program(ctypes.Structure):  # struct sock_fprog
    _fields_ = [("size", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


class Failed(Exception):
    def __init__(self, step, err):
        self.step, self.err = step, err


def must(result, step):
    if result < 0:
        raise Failed(step, ctypes.get_errno())
    return result


def prctl(option, value=0, other=0):
    return libc.prctl(option, value, other, 0, 0)


def close_from(first):
    must(libc.syscall(SYS_CLOSE_RANGE, ctypes.c_uint(first), ctypes.c_uint(~0 & 0xFFFFFFFF), 0), "close descriptors")


# Not socket.send_fds and recv_fds, which import when they are called.
def receive(fd, size):
    sock = socket.socket(fileno=fd)
    try:
        data, control, _, _ = sock.recvmsg(size, socket.CMSG_SPACE(4 * MAX_FDS), socket.MSG_CMSG_CLOEXEC)
    finally:
        sock.detach()
    passed = b"".join(part for _, kind, part in control if kind == socket.SCM_RIGHTS)
    return data, struct.unpack(f"{len(passed) // 4}i", passed)


def send(fd, data, *fds):
    sock = socket.socket(fileno=fd)
    try:
        passed = struct.pack(f"{len(fds)}i", *fds)
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)] if fds else []
        sock.sendmsg([data], control, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    except OSError:
        pass  # whoever asked has gone
    finally:
        sock.detach()


# ---- a fork ---------------------------------------------------------------------


class Request:
    def __init__(self, data, fds):
        self.namespaces, self.uid, has_ruleset, self.waits, count, _ = HEADER.unpack_from(data)
        self.control, self.stdin, self.stdout, self.stderr, self.init = fds[:5]
        self.ruleset = fds[5] if has_ruleset else -1
        parts, at = [], HEADER.size
        for _ in range(count):
            (size,) = SIZE.unpack_from(data, at)
            at += SIZE.size
            parts.append(data[at : at + size])
            at += size
        self.limits, self.filter, self.folder = parts[:3]
        self.environment = parts[3:]


def drop_capabilities():
    must(prctl(PR_SET_NO_NEW_PRIVS, 1), "no_new_privs")
    if prctl(PR_GET_NO_NEW_PRIVS) != 1:
        raise Failed("no_new_privs is not in force", 0)
    must(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL), "clear ambient capabilities")
    known = 0
    while prctl(PR_CAPBSET_READ, known) >= 0:
        must(prctl(PR_CAPBSET_DROP, known), "drop a capability from the bounding set")
        known += 1
    header = struct.pack("<Ii", CAPABILITY_VERSION_3, 0)
    must(libc.capset(header, bytes(24)), "capset")
    held = ctypes.create_string_buffer(b"\xff" * 24, 24)
    must(libc.capget(header, held), "capget")
    if known == 0 or any(held.raw) or any(prctl(PR_CAPBSET_READ, n) != 0 for n in range(known)):
        raise Failed("capabilities are still there", 0)


def enter(request):
    must(prctl(PR_SET_DUMPABLE, 0), "become unreadable")
    must(libc.setns(request.init, request.namespaces), "enter the jar")
    if request.uid >= 0:
        os.setgroups([])
        os.setresgid(request.uid, request.uid, request.uid)
        os.setresuid(request.uid, request.uid, request.uid)


def confine(request, introduced, files):
    """The rest of launcher/enter.cc, in its order, by a process that is in the namespaces."""
    os.setsid()
    drop_capabilities()
    os.chdir(request.folder)
    if request.ruleset >= 0:
        must(libc.syscall(SYS_LANDLOCK_RESTRICT_SELF, request.ruleset, 0), "landlock_restrict_self")
    os.read(introduced, 1)  # until the first fork has ended
    for fd, place in ((request.stdin, 0), (request.stdout, 1), (request.stderr, 2)):
        os.dup2(fd, place)
    os.dup2(STATUS_FD, TOLD_FD, inheritable=False)
    os.dup2(request.control, CONTROL, inheritable=False)
    close_from(TOLD_FD + 1)
    must(prctl(PR_SET_DUMPABLE, 1), "become readable again")
    resource.setrlimit(resource.RLIMIT_NOFILE, files)
    for at in range(0, len(request.limits), LIMIT.size):
        which, soft, hard = LIMIT.unpack_from(request.limits, at)
        resource.setrlimit(which, (soft, hard))
    if request.filter:
        program = Program(len(request.filter) // 8, request.filter)
        must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program)), "load the filter")


def join(status, told, files):
    """In the first fork. Returns in the worker alone, when it is a process of its jar like any other."""
    report = status
    try:
        os.dup2(status, STATUS_FD)
        report = STATUS_FD
        os.dup2(told, TOLD_FD)
        close_from(TOLD_FD + 1)
        request = Request(*receive(STATUS_FD, MAX_REQUEST))
        enter(request)
        introduced, introduces = os.pipe()
        worker = os.fork()
        if worker != 0:
            send(STATUS_FD, b"P", os.pidfd_open(worker))
            os.write(TOLD_FD, SIZE.pack(worker))
            os._exit(0)
        if request.waits and os.read(STATUS_FD, 1) != b"g":
            os._exit(125)
        os.close(introduces)
        confine(request, introduced, files)
        report = TOLD_FD
        os.write(report, b"J")
        os.close(report)
        return request.environment
    except Failed as failed:
        err, step = failed.err, failed.step
    except OSError as error:
        err, step = error.errno or 0, "join the jar"
    except BaseException as error:
        err, step = 0, "join the jar: " + type(error).__name__
    send(report, b"F" + FAILURE.pack(err) + step.encode())
    os._exit(125)


# ---- the server -----------------------------------------------------------------


class Server:
    def __init__(self):
        self.forks = {}  # first fork -> (status socket, where it tells the worker's pid)
        self.workers = {}  # worker -> status socket
        self.ended = {}  # pid -> wait status, of whom we have not yet been told
        self.files = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.files[1], self.files[1]))
        must(prctl(PR_SET_CHILD_SUBREAPER, 1), "become a subreaper")
        self.child_ended, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)

    def serve(self):
        """Returns in workers alone: their variables."""
        ready = select.poll()
        ready.register(CONTROL, select.POLLIN)
        ready.register(self.child_ended, select.POLLIN)
        while True:
            for fd, _ in ready.poll():
                if fd == self.child_ended:
                    os.read(fd, 4096)
                    self.reap()
                    continue
                data, fds = receive(CONTROL, 1)
                if not data:
                    os._exit(0)
                environment = self.fork(*fds)
                if environment is not None:
                    return environment

    def fork(self, status):
        told, tells = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            return join(status, tells, self.files)
        os.close(tells)
        self.forks[pid] = status, told

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            self.ended[pid] = status
        for pid in self.ended.keys() & self.forks.keys():
            del self.ended[pid]
            socket_fd, told = self.forks.pop(pid)
            try:
                (worker,) = SIZE.unpack(os.read(told, SIZE.size))
                self.workers[worker] = socket_fd
            except (OSError, struct.error):
                os.close(socket_fd)  # it has said why
            os.close(told)
        for pid in self.ended.keys() & self.workers.keys():
            socket_fd = self.workers.pop(pid)
            send(socket_fd, STATUS.pack(self.ended.pop(pid)))
            os.close(socket_fd)
        if not self.forks:
            self.ended.clear()  # of forks that were killed before they could tell


# ---- before and after -----------------------------------------------------------


def threads():
    return len(os.listdir("/proc/self/task"))


def become_single():
    """OpenBLAS ends its threads in every fork, of the parent too, and starts them again when they are used."""
    if threads() > 1:
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    for _ in range(100):
        if threads() == 1:
            return
        time.sleep(0.01)
    raise RuntimeError("a module started a thread, which a fork would not have")


def add_user_packages():
    """The home is another one than at the start: as site does it, before the system's packages."""
    if not site.ENABLE_USER_SITE:
        return
    site.USER_BASE = site.USER_SITE = None
    folder = site.getusersitepackages()
    if folder in sys.path or not os.path.isdir(folder):
        return
    system = set(site.getsitepackages())
    at = next((i for i, path in enumerate(sys.path) if path in system), len(sys.path))
    after = sys.path[at:]
    del sys.path[at:]
    site.addsitedir(folder)
    sys.path += after


def renew_randomness():
    """`random` sees to itself. Others tell a fork by its pid, which may be the same in another jar."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "tempfile" in sys.modules:
        sys.modules["tempfile"]._name_sequence = None
    if "multiprocessing.process" in sys.modules:
        sys.modules["multiprocessing.process"].current_process().authkey = os.urandom(32)
    if "ssl" in sys.modules:
        sys.modules["ssl"].RAND_add(os.urandom(32), 32.0)


def start_anew(environment):
    """In the jar, and as its guest: from here on nothing need be trusted."""
    os.environ.clear()
    for variable in environment:
        name, _, value = variable.partition(b"=")
        os.environb[name] = value
    time.tzset()
    importlib.invalidate_caches()
    renew_randomness()
    add_user_packages()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.enable()


def text_part():
    return part(CONTROL, SIZE.unpack(part(CONTROL, SIZE.size))[0])


def prepare(worker, preload):
    worker["prepare"](preload)
    become_single()
    gc.collect()
    gc.disable()
    gc.freeze()


def run():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(0, CONTROL, inheritable=False)
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0)
    worker = {"__name__": "belljar_worker"}
    try:
        exec(compile(text_part(), "<belljar worker>", "exec"), worker)
        prepare(worker, json.loads(text_part()))
        server = Server()
    except BaseException as error:
        os.write(CONTROL, f"F{type(error).__name__}: {error}".encode())
        os._exit(1)
    for fd in (1, 2):
        os.dup2(null, fd)
    os.close(null)
    os.write(CONTROL, b"R")
    start_anew(server.serve())
    worker["after_fork"]()
    worker["main"](CONTROL)


run()
