"""What a coding agent might run: useful work, and everything it should not do.

It runs under belljar and reports one line per attempt, for tour.sh to show:
    did      what            detail
    stopped  what            detail  promise  layer
    ESCAPED  what            detail  promise
`layer` is the one that gives this errno; tour.sh checks it against `belljar explain`.
"""

import contextlib
import ctypes
import errno
import fcntl
import http.server
import os
import shutil
import socket
import subprocess
import sys
import termios
import threading
import urllib.request

libc = ctypes.CDLL(None, use_errno=True)


def say(*columns):
    print("\t".join(columns), flush=True)


# ---------------------------------------------------------------- good things


def work(what, deed):
    say("did", what, str(deed()))


def write_a_file():
    with open("report.txt", "w") as file:
        file.write("all done\n")
    return f"{os.path.getsize('report.txt')} bytes"


def run_a_program():
    return subprocess.run(["sort", "-r"], input="a\nb\n", capture_output=True, text=True, check=True).stdout.split()


class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello from inside")

    def log_message(self, *_):
        pass


def serve_and_fetch():
    with http.server.HTTPServer(("127.0.0.1", 0), Hello) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/", timeout=5) as reply:
            text = reply.read().decode()
        server.shutdown()
    return text


def compute():
    sieve = bytearray([1]) * 1_000_000
    for n in range(2, 1000):
        if sieve[n]:
            sieve[n * n :: n] = bytes(len(range(n * n, 1_000_000, n)))
    return f"{sum(sieve) - 2} primes below a million"


# ----------------------------------------------------------------- bad things

# Which layer answers with which errno, by promise. Where a layer stands before
# another (seccomp is asked before the kernel looks at rights) it is that one.
LAYER = {
    "files": {"ENOENT": "view", "EROFS": "view", "EACCES": "landlock"},
    "network": {"ENETUNREACH": "network namespace", "ECONNREFUSED": "network namespace"},
    "processes": {"ENOENT": "pid namespace", "ESRCH": "pid namespace"},
    "environment": {"not there": "env scrub"},
    "limits": {"EAGAIN": "rlimits"},
    "syscalls": {"EPERM": "seccomp", "ENOSYS": "seccomp"},
}


def attempt(promise, what, deed):
    """deed raises what stopped it, or returns what it got."""
    try:
        got = deed()
    except OSError as error:
        name = errno.errorcode.get(error.errno, str(error))
        say("stopped", what, name, promise, LAYER[promise].get(name, ""))
    except LookupError as missing:
        say("stopped", what, str(missing.args[0]), promise, LAYER[promise].get(str(missing.args[0]), ""))
    else:
        say("ESCAPED", what, str(got), promise)


def call(name, *arguments):
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)
    return "it worked"


def read(path):
    with open(path) as file:
        return file.read().strip()


def write(path):
    with open(path, "w") as file:
        file.write("planted\n")
    return path


def token(name):
    for where in ("self", "1"):
        with contextlib.suppress(OSError), open(f"/proc/{where}/environ", "rb") as file:
            for entry in file.read().split(b"\0"):
                if entry.startswith(name.encode() + b"="):
                    return entry.decode()
    raise LookupError("not there")


def connect(address):
    with socket.create_connection(address, timeout=3):
        return f"connected to {address}"


def set_id():
    write("tool")
    os.chmod("tool", 0o6755)
    return oct(os.stat("tool").st_mode)


def type_into_terminal():
    ours, theirs = os.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSTI, b"x")
    finally:
        os.close(ours)
        os.close(theirs)
    return "typed"


def fork_bomb():
    children = []
    try:
        while len(children) < 500:
            child = os.fork()
            if child == 0:
                threading.Event().wait(20)
                os._exit(0)
            children.append(child)
        return f"{len(children)} processes"
    finally:
        for child in children:
            os.kill(child, 9)
            os.waitpid(child, 0)


PTRACE_ATTACH = 16


def trace():
    """Its own child, which the kernel would let it: so it is the filter that says no."""
    child = os.fork()
    if child == 0:
        threading.Event().wait(20)
        os._exit(0)
    try:
        return call("ptrace", PTRACE_ATTACH, child, 0, 0)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def main(home, outside, host_pid, port):
    work("writes a file in its workdir", write_a_file)
    work("runs another program", run_a_program)
    work("serves and fetches on its own loopback", serve_and_fetch)
    work("computes", compute)
    say("end")

    attempt("files", "read the ssh key in ~/.ssh", lambda: read(f"{home}/.ssh/id_ed25519"))
    attempt("files", "write a file beside the project", lambda: write(f"{outside}/planted"))
    attempt("files", "delete a folder of photos", lambda: shutil.rmtree(f"{outside}/photos"))
    attempt("environment", "read the caller's API token", lambda: token("TOUR_API_TOKEN"))
    attempt("network", "connect to the internet (192.0.2.1)", lambda: connect(("192.0.2.1", 443)))
    attempt("network", "connect to a server on the host's 127.0.0.1", lambda: connect(("127.0.0.1", port)))
    attempt("processes", "look at a process of the host", lambda: read(f"/proc/{host_pid}/cmdline"))
    attempt("processes", "kill a process of the host", lambda: os.kill(host_pid, 9))
    attempt("syscalls", "trace a process", trace)
    attempt("syscalls", "mount a file system", lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, None))
    attempt("syscalls", "make a set-uid program", set_id)
    attempt("syscalls", "type into a terminal (TIOCSTI)", type_into_terminal)
    attempt("limits", "start processes without end", fork_bomb)
    say("end")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
