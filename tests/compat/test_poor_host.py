"""Ordinary programs where a jar has no mounts of its own, and its connects are made for it."""

from __future__ import annotations

import socket
import threading

import jar as jars
import poor
import pytest

pytestmark = pytest.mark.parametrize("identity", ["user"], indirect=True)

FULL = ["--network=full", *poor.ACCEPTED]


@pytest.fixture
def jar(scene):
    return poor.PoorJar(scene, "developer")


def python(jar, code, **how) -> jars.Run:
    return jar.run(["/usr/bin/python3", "-c", code], policy=FULL, **how)


def test_processes_of_python_talk_to_one_another(jar):
    code = """
import multiprocessing as m
def work(d, n): d[n] = n * n
if __name__ == "__main__":
    with m.Manager() as manager:
        d = manager.dict()
        all = [m.Process(target=work, args=(d, n)) for n in range(4)]
        for one in all: one.start()
        for one in all: one.join()
        print(dict(sorted(d.items())))
    a, b = m.Pipe(); a.send("pipe"); print(b.recv())
    with m.get_context("forkserver").Pool(2) as pool: print(pool.map(abs, [-1, -2]))
"""
    path = jar.scene.file("work.py", code)
    run = jar.run(["/usr/bin/python3", path], policy=FULL)
    assert run.stdout == "{0: 0, 1: 1, 2: 4, 3: 9}\npipe\n[1, 2]\n", run


def test_ways_to_name_a_socket_of_its_own(jar):
    code = r"""
import os, socket, tempfile
def meet(bound, called, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_UNIX, kind) as server, socket.socket(socket.AF_UNIX, kind) as client:
        server.bind(bound); server.listen()
        client.connect(called)
        accepted, _ = server.accept()
        client.send(b"hi"); assert accepted.recv(2) == b"hi"
        assert client.getpeername() == bound, client.getpeername()
        os.unlink(bound)
here = os.getcwd()
meet("a", "a"); meet(here + "/b", "b"); meet("c", here + "/c"); meet("d", "./../" + os.path.basename(here) + "/d")
os.mkdir("f"); os.symlink("f", "l"); meet("f/e", "l/e"); meet("g", "g", socket.SOCK_SEQPACKET)
folder = os.open("f", os.O_RDONLY)
meet("f/h", f"/proc/self/fd/{folder}/h")
os.chdir("f"); meet("i", "i"); os.fchdir(folder)
for place in (tempfile.gettempdir(), os.path.expanduser("~")): meet(place + "/s", place + "/s")
a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"
for path, error in (("none", FileNotFoundError), (here, ConnectionRefusedError)):
    try: socket.socket(socket.AF_UNIX).connect(path)
    except error: continue
    raise SystemExit(path)
try: a.connect("x")
except OSError as error: print(error.errno)
"""
    run = python(jar, code)
    assert run.exit == 0, run


def test_a_server_whose_queue_is_full_is_waited_for(jar):
    code = r"""
import os, socket, threading, time
server = socket.socket(socket.AF_UNIX); server.bind("s"); server.listen(0)
full = []
while True:
    s = socket.socket(socket.AF_UNIX); s.setblocking(False)
    try: s.connect("s")
    except BlockingIOError: break
    full.append(s)
late = socket.socket(socket.AF_UNIX); late.settimeout(None)
late.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, (1).to_bytes(8, "little") + bytes(8))
try: late.connect("s"); raise SystemExit("connected")
except BlockingIOError: pass
late = socket.socket(socket.AF_UNIX)
done = threading.Thread(target=late.connect, args=("s",)); done.start()
other = socket.socket(socket.AF_INET); other.settimeout(5)
listener = socket.create_server(("127.0.0.1", 0)); other.connect(listener.getsockname())  # nobody waits for it
assert done.is_alive()
for _ in full: server.accept()
done.join(10); assert not done.is_alive(); late.send(b"x"); server.settimeout(5)
assert late.getblocking() and server.accept()[0].recv(1) == b"x"; print("met")
"""
    run = python(jar, code)
    assert run.stdout == "met\n", run


def test_the_network_is_as_it_was(jar):
    """Waiting or not, refused or not, connected twice, without a server that answers."""
    code = r"""
import errno, select, socket, sys, time
port = int(sys.argv[1])
here = ("127.0.0.1", port)
with socket.create_connection(here) as s:  # waits
    assert s.recv(2) == b"hi" and s.getpeername() == here
    try: s.connect(here)
    except OSError as error: assert error.errno == errno.EISCONN, error
s = socket.socket(); s.setblocking(False)
assert s.connect_ex(here) in (0, errno.EINPROGRESS)
assert select.select([], [s], [], 5)[1] and s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
closed = socket.socket(); closed.bind(("127.0.0.1", 0))
for wait in (None, 5):
    s = socket.socket(); s.settimeout(wait)
    try: s.connect(closed.getsockname()); raise SystemExit("connected")
    except ConnectionRefusedError: pass
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); v = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind(("127.0.0.1", 0)); v.connect(u.getsockname()); v.send(b"x"); assert u.recv(1) == b"x"
w = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); w.sendto(b"y", u.getsockname()); assert u.recv(1) == b"y"
# A listener whose queue is full does not answer.
silent = socket.socket(); silent.bind(("127.0.0.1", 0)); silent.listen(0)
first = [socket.socket() for _ in range(4)]
for f in first: f.setblocking(False); f.connect_ex(silent.getsockname())
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, (1).to_bytes(8, "little") + bytes(8))
begin = time.monotonic()
try: s.connect(silent.getsockname()); raise SystemExit("connected")
except BlockingIOError as error: assert error.errno == errno.EINPROGRESS
assert 0.9 < time.monotonic() - begin < 10
s.close()
print("fine")
"""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connection.sendall(b"hi")

        threading.Thread(target=serve, daemon=True).start()
        port = str(server.getsockname()[1])
        run = jar.run(["/usr/bin/python3", "-c", code, port], policy=FULL)
        server.shutdown(socket.SHUT_RDWR)
    assert run.stdout == "fine\n", run


def test_a_connect_that_waits_ends_with_the_guest(jar):
    code = r"""
import socket, threading
silent = socket.socket(); silent.bind(("127.0.0.1", 0)); silent.listen(0)
for _ in range(3):
    s = socket.socket(); s.setblocking(False); s.connect_ex(silent.getsockname())
threading.Thread(target=lambda: socket.socket().connect(silent.getsockname()), daemon=True).start()
import time; time.sleep(0.3); print("waits", flush=True); import os; os._exit(3)
"""
    run = python(jar, code)
    assert run.exit == 3 and run.stdout == "waits\n" and run.seconds < 20, run


def test_the_ssh_agent_has_its_keys_inside(jar, need):
    need("ssh-agent", "ssh-keygen", "ssh-add")
    script = (
        "eval $(ssh-agent) >/dev/null; ssh-keygen -q -t ed25519 -N '' -f ./k; ssh-add -q ./k; "
        "ssh-add -l | cut -d' ' -f4; ssh-agent -k >/dev/null"
    )
    run = jar.run(["/bin/sh", "-c", script], policy=FULL)
    assert run.stdout == "(ED25519)\n", run


def test_tmux_runs_a_session(jar, need):
    need("tmux")
    script = "tmux -S ./t new -d 'echo hi > out; sleep 30'; while ! [ -s out ]; do sleep 0.1; done; cat out; tmux -S ./t kill-server"
    run = jar.run(["/bin/sh", "-c", script], policy=FULL, env={"TERM": "xterm"})
    assert run.stdout == "hi\n", run


def test_git_clones_over_a_socket_of_its_own(jar, need):
    need("git")
    script = (
        "git init -q a && cd a && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && cd .. && "
        "git daemon --listen=127.0.0.1 --port=$1 --base-path=. --export-all --reuseaddr & "
        "for i in $(seq 100); do git clone -q git://127.0.0.1:$1/a b 2>/dev/null && break; sleep 0.1; done; "
        "git -C b log --format=%s; kill %1 2>/dev/null; kill $!"
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    run = jar.run(["/bin/sh", "-c", script, "sh", port], policy=FULL)
    assert run.stdout == "x\n", run


def test_node_talks_over_both_kinds(jar, need):
    node = need("node")
    code = """
const net = require("net");
const meet = (where) => new Promise((done) => {
  const server = net.createServer((s) => s.end("hi")).listen(where, () => {
    const to = typeof where === "string" ? where : server.address().port;
    net.connect(to).on("data", (d) => { console.log(String(d)); server.close(done); });
  });
});
meet("./n.sock").then(() => meet(0));
"""
    run = jar.run([node, "-e", code], policy=FULL)
    assert run.stdout == "hi\nhi\n", run


def test_java_talks_over_both_kinds(jar, need):
    java = need("java")
    source = """
import java.net.*; import java.nio.*; import java.nio.channels.*; import java.nio.file.*;
public class Meet {
  static void meet(ServerSocketChannel server, SocketAddress at) throws Exception {
    server.bind(at);
    SocketChannel client = SocketChannel.open(server.getLocalAddress());
    SocketChannel accepted = server.accept();
    client.write(ByteBuffer.wrap("hi".getBytes()));
    ByteBuffer b = ByteBuffer.allocate(2); accepted.read(b); System.out.println(new String(b.array()));
  }
  public static void main(String[] a) throws Exception {
    meet(ServerSocketChannel.open(StandardProtocolFamily.UNIX), UnixDomainSocketAddress.of(Path.of("j.sock")));
    meet(ServerSocketChannel.open(), new InetSocketAddress("127.0.0.1", 0));
  }
}
"""
    path = jar.scene.file("Meet.java", source)
    run = jar.run([java, path], policy=[*FULL, "--max-memory-mb=4096"], timeout=120)
    assert run.stdout == "hi\nhi\n", run
