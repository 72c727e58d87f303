# The fork server: an interpreter that has imported what sessions use, in a jar of its own, and
# forks into the jars of sessions. session/warm.h says how the jars lie. How a fork joins one,
# in launcher/joiner.cc, is over before any of this runs in the fork.
#
#   engine -> here    Call (launcher/join_protocol.h), with a socket and the pidfd of a jar's init
#   fork  <-> engine  over that socket, of which this process keeps a copy and reads nothing: what
#                     a session is, only its fork ever knows
#   here -> engine    over a fork's socket: its pidfd, when it is born: whoever is in the jar may stop it
#                     before it says anything itself; 4 bytes, its wait status, when it has ended
#
# Runs with `part`, which reads from a descriptor, among its globals. Needs Python 3.9.
import ctypes
import gc
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

CALL = struct.Struct("<Qq")
SIZE = struct.Struct("<I")
STATUS = struct.Struct("<I")
FAILURE = struct.Struct("<ci")
CONTROL = 3  # of a worker, and of this process
PR_SET_CHILD_SUBREAPER = 36


def receive(fd, size, fds):
    sock = socket.socket(fileno=fd)
    try:
        data, control, _, _ = sock.recvmsg(size, socket.CMSG_SPACE(4 * fds), socket.MSG_CMSG_CLOEXEC)
    finally:
        sock.detach()
    passed = b"".join(part for _, kind, part in control if kind == socket.SCM_RIGHTS)
    return data, struct.unpack(f"{len(passed) // 4}i", passed)


def send(fd, data, fds=()):
    sock = socket.socket(fileno=fd)
    passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))] if fds else []
    try:
        sock.sendmsg([data], passed, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    except OSError:
        pass  # whoever asked has gone
    finally:
        sock.detach()


# ---- the joiner -----------------------------------------------------------------


class Fork(ctypes.Structure):  # BelljarFork of launcher/joiner.cc
    _fields_ = [
        ("fork", ctypes.c_void_p),
        ("rseq", ctypes.c_int64),
        ("files", ctypes.c_uint64 * 2),
        ("namespaces", ctypes.c_uint64),
        ("uid", ctypes.c_int64),
        ("status_fd", ctypes.c_int32),
        ("init_fd", ctypes.c_int32),
        ("pid", ctypes.c_int64),
        ("failed", ctypes.c_char_p),
    ]


class Joiner:
    def __init__(self, library_fd, files):
        # PyDLL: the interpreter's lock is held, as it is in os.fork.
        self.library = ctypes.PyDLL(f"/proc/self/fd/{library_fd}")
        os.close(library_fd)
        self.library.belljar_fork.restype = ctypes.c_int64
        self.library.belljar_variables.restype = ctypes.c_void_p
        libc = ctypes.PyDLL(None)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.call = Fork(fork=ctypes.cast(libc.fork, ctypes.c_void_p), files=files)
        try:  # glibc has one since 2.35
            if ctypes.c_uint.in_dll(libc, "__rseq_size").value:
                self.call.rseq = ctypes.c_ssize_t.in_dll(libc, "__rseq_offset").value
        except ValueError:
            pass
        self.pointer = ctypes.byref(self.call)

    def fork(self, namespaces, uid, status_fd, init_fd):
        """os.fork into a jar: 0 in the worker, once it is there. Below 0: an errno."""
        call = self.call
        call.namespaces, call.uid, call.status_fd, call.init_fd = namespaces, uid, status_fd, init_fd
        ctypes.pythonapi.PyOS_BeforeFork()
        pid = self.library.belljar_fork(self.pointer)
        if pid == 0:
            ctypes.pythonapi.PyOS_AfterFork_Child()
        else:
            ctypes.pythonapi.PyOS_AfterFork_Parent()
        return pid

    def variables(self):
        size = ctypes.c_uint32()
        at = self.library.belljar_variables(ctypes.byref(size))
        return ctypes.string_at(at, size.value).split(b"\0")[:-1]


# ---- the server -----------------------------------------------------------------


class Server:
    def __init__(self, library_fd):
        self.workers = {}  # pidfd -> pid, status socket
        self.serves = True
        self.ready = select.poll()
        self.ready.register(CONTROL, select.POLLIN)
        files = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files[1], files[1]))
        self.joiner = Joiner(library_fd, files)

    def serve(self):
        """Returns in workers alone."""
        while self.serves or self.workers:
            for fd, _ in self.ready.poll():
                if fd != CONTROL:
                    self.reap(fd)
                elif self.fork():
                    return
        os._exit(0)

    def fork(self):
        data, fds = receive(CONTROL, CALL.size, 2)
        if not data:  # nobody wants forks any more, but how workers end has still to be told
            self.ready.unregister(CONTROL)
            self.serves = False
            return False
        status_fd, init_fd = fds
        pid = self.joiner.fork(*CALL.unpack(data), status_fd, init_fd)
        if pid == 0:
            return True
        os.close(init_fd)
        if pid > 0:
            pidfd = os.pidfd_open(pid)
            send(status_fd, b"B", [pidfd])
            self.workers[pidfd] = pid, status_fd
            self.ready.register(pidfd, select.POLLIN)
        else:
            send(status_fd, FAILURE.pack(b"F", -pid) + self.joiner.call.failed)
            os.close(status_fd)
        renew_numpy()
        return False

    def reap(self, pidfd):
        self.ready.unregister(pidfd)
        os.close(pidfd)
        pid, status_fd = self.workers.pop(pidfd)
        _, status = os.waitpid(pid, 0)
        send(status_fd, STATUS.pack(status))
        os.close(status_fd)


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


def renew_numpy():
    """Here and not in the fork, so that nobody waits for it: each fork finds another state, and no two the same."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


def renew_randomness():
    """`random` sees to itself. Others tell a fork by its pid, which may be the same in another jar."""
    if "tempfile" in sys.modules:
        sys.modules["tempfile"]._name_sequence = None
    if "multiprocessing.process" in sys.modules:
        sys.modules["multiprocessing.process"].current_process().authkey = os.urandom(32)
    if "ssl" in sys.modules:
        sys.modules["ssl"].RAND_add(os.urandom(32), 32.0)


def add_user_packages():
    """The home is another one than at the start: as site does it, before the system's packages."""
    base = os.environ.get("PYTHONUSERBASE") or os.path.expanduser("~/.local")
    if os.environ.get("PYTHONNOUSERSITE"):
        return
    site.ENABLE_USER_SITE = True  # which -s had switched off, for the start
    if not os.path.isdir(base):
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


def start_anew(variables):
    """In the jar, and as its guest: from here on nothing need be trusted."""
    for variable in variables:
        name, _, value = variable.partition(b"=")
        os.environb[name] = value
    time.tzset()
    renew_randomness()
    add_user_packages()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.enable()


def text_part():
    return part(CONTROL, SIZE.unpack(part(CONTROL, SIZE.size))[0])


def folders():
    """Where modules are loaded from, and could be in a fork."""
    found = [*sys.path, *([sys.pycache_prefix] if sys.pycache_prefix else [])]
    for module in list(sys.modules.values()):
        found += [path for path in getattr(module, "__path__", ()) if isinstance(path, str)]
    return sorted(set(found))


def prepare(worker):
    exec(compile(text_part(), "<belljar worker>", "exec"), worker)
    arguments = json.loads(text_part())
    for name in ("os", "sys", "part"):
        del vars(sys.modules["__main__"])[name]  # of what has read all this
    _, (library_fd,) = receive(CONTROL, 1, 1)
    worker["prepare"](*arguments)
    become_single()
    renew_numpy()
    # Folders that are not here may be in a session's jar.
    for path in [path for path, finder in sys.path_importer_cache.items() if finder is None]:
        del sys.path_importer_cache[path]
    os.environ.clear()  # what was needed at the start; a session has its own
    server = Server(library_fd)
    gc.collect()
    gc.disable()
    gc.freeze()
    return server


def run():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(0, CONTROL, inheritable=False)
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0)
    worker = {"__name__": "belljar_worker"}
    try:
        server = prepare(worker)
    except BaseException as error:
        os.write(CONTROL, f"F{type(error).__name__}: {error}".encode())
        os._exit(1)
    for fd in (1, 2):
        os.dup2(null, fd)
    os.close(null)
    os.write(CONTROL, b"R" + json.dumps(folders()).encode() + b"\n")
    server.serve()
    start_anew(server.joiner.variables())
    worker["after_fork"]()
    worker["main"](CONTROL)


run()
