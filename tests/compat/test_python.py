"""Python and what people run with it. Always Debian's own, in /usr/bin."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import pathlib
import shutil
import zipfile

import pytest


def test_multiprocessing(jar):
    out = jar.python("""
import multiprocessing as mp
from multiprocessing import shared_memory

def square(n):
    return n * n

def work(lock, queue, counter, name):
    memory = shared_memory.SharedMemory(name=name)
    for _ in range(500):
        with lock:
            memory.buf[0] = (memory.buf[0] + 1) % 251
            counter.value += 1
    queue.put(mp.current_process().name)
    memory.close()

if __name__ == "__main__":
    with mp.Pool(4) as pool:
        print(sum(pool.map(square, range(100))))
    memory = shared_memory.SharedMemory(create=True, size=1 << 20)
    lock, queue, counter = mp.Lock(), mp.Queue(), mp.Value("i", 0)
    people = [mp.Process(target=work, args=(lock, queue, counter, memory.name), name=f"p{n}") for n in range(4)]
    for p in people: p.start()
    print(*sorted(queue.get(timeout=20) for _ in people))
    for p in people: p.join()
    print(counter.value, memory.buf[0], {p.exitcode for p in people})
    memory.close(); memory.unlink()
""")
    assert out.splitlines() == ["328350", "p0 p1 p2 p3", f"2000 {2000 % 251} {{0}}"]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_multiprocessing_without_fork(jar, method):
    out = jar.python("""
import multiprocessing as mp, sys
def square(n):
    return n * n
if __name__ == "__main__":
    with mp.get_context(sys.argv[1]).Pool(2) as pool, mp.Manager() as manager:
        print(sum(pool.map(square, range(10))), manager.list([1])[0])
""", method)  # fmt: skip
    assert out == "285 1\n"


def test_threads(jar):
    out = jar.python("""
import concurrent.futures as f, threading, time
barrier = threading.Barrier(40)
with f.ThreadPoolExecutor(40) as pool:
    print(len({*pool.map(lambda n: (barrier.wait(10), threading.get_ident())[1], range(40))}))
""")
    assert out == "40\n"


def test_asyncio_subprocesses(jar):
    out = jar.python("""
import asyncio
async def one(n):
    p = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    return (await p.communicate(str(n).encode()))[0].decode(), p.returncode
async def main():
    print(*(await asyncio.gather(*map(one, range(10)))))
    p = await asyncio.create_subprocess_shell("sleep 50")
    p.terminate()
    print(await asyncio.wait_for(p.wait(), 5))
asyncio.run(main())
""")
    assert out.splitlines() == [" ".join(str((str(n), 0)) for n in range(10)), "-15"]


def test_sqlite_with_a_write_ahead_log(jar):
    out = jar.python("""
import multiprocessing as mp, sqlite3
def connect():
    db = sqlite3.connect("data.db", timeout=20, isolation_level=None)
    return db, db.execute("pragma journal_mode=wal").fetchone()[0]
def write(n):
    db, _ = connect()
    for i in range(100):
        db.execute("insert into t values (?, ?)", (n, i))
if __name__ == "__main__":
    db, mode = connect()
    db.execute("create table t (a, b)")
    writers = [mp.Process(target=write, args=(n,)) for n in range(3)]
    for w in writers: w.start()
    for w in writers: w.join()
    print(mode, *db.execute("select count(*), sum(b) from t").fetchone(), db.execute("pragma integrity_check").fetchone()[0])
""")
    assert out == f"wal 300 {3 * sum(range(100))} ok\n"


def test_pty_module(jar):
    out = jar.python("""
import os, pty
pid, fd = pty.fork()
if pid == 0:
    os.execvp("sh", ["sh", "-c", "test -t 0 && stty size && tty && echo on a tty"])
text = b""
try:
    while data := os.read(fd, 1000): text += data
except OSError: pass
os.waitpid(pid, 0)
print(text.decode().split())
""")
    assert out == "['0', '0', '/dev/pts/0', 'on', 'a', 'tty']\n"


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_UNIX"])
def test_server_and_client_on_loopback(jar, family):
    out = jar.python("""
import socket, sys, threading
family = getattr(socket, sys.argv[1])
server = socket.socket(family)
server.bind({"AF_INET": ("127.0.0.1", 0), "AF_INET6": ("::1", 0), "AF_UNIX": "socket"}[sys.argv[1]])
server.listen()
def serve():
    peer, _ = server.accept()
    with peer, peer.makefile("rwb") as file:
        file.write(file.readline().upper())
threading.Thread(target=serve).start()
client = socket.socket(family)
client.connect(server.getsockname())
client.sendall(b"hello\\n")
print(client.makefile().readline(), end="")
""", family)  # fmt: skip
    assert out == "HELLO\n"


def test_web_server_and_client(jar, scene):
    scene.file("page.txt", "a page\n")
    out = jar.python("""
import http.server, threading, urllib.request
server = http.server.ThreadingHTTPServer(("localhost", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://localhost:{server.server_port}/page.txt", timeout=10).read())
""")
    assert out == "b'a page\\n'\n"


def wheel() -> bytes:
    """A package, by hand: a wheel is a zip."""
    files = {
        "belljar_answer/__init__.py": b"answer = 42\ndef main():\n    print('script', answer)\n",
        "belljar_answer-1.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: belljar-answer\nVersion: 1.0\n",
        "belljar_answer-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "belljar_answer-1.0.dist-info/entry_points.txt": b"[console_scripts]\nbelljar-answer = belljar_answer:main\n",
    }
    record = ""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    files["belljar_answer-1.0.dist-info/RECORD"] = (record + "belljar_answer-1.0.dist-info/RECORD,,\n").encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return packed.getvalue()


@pytest.mark.heavy
def test_venv_and_pip_install_of_a_local_wheel(jar, scene):
    if not pathlib.Path("/usr/share/python-wheels").is_dir():
        pytest.skip("not installed: python3-venv")
    name = "belljar_answer-1.0-py3-none-any.whl"
    scene.file(name, wheel())
    out = jar.shell(
        f"/usr/bin/python3 -m venv env; . env/bin/activate; pip install --no-index --quiet ./{name} >&2;"
        "python -c 'import belljar_answer, sys; print(belljar_answer.answer, sys.prefix)'; belljar-answer",
        timeout=55,
    )
    assert out == f"42 {scene.workdir}/env\nscript 42\n"


@pytest.mark.heavy
def test_tools_in_the_callers_home(everyone, make_jar):
    """Where the caller's own tools are pyenv's, rustup's or such, `developer` finds them.

    They are this process's, so it is the caller; what is not below its home is not tried.
    """
    jar = make_jar(next(who for who in everyone.values() if who.uid == os.geteuid()), "developer")
    home = os.path.expanduser("~")
    tried = []
    for tool, command in {
        "python3": ["-c", "print(6 * 7)"],
        "cargo": ["init", "--quiet", "--vcs=none", "--name=hello", "made"],
        "rustc": ["--version"],
        "go": ["version"],
        "node": ["-p", "6 * 7"],
    }.items():
        path = shutil.which(tool)
        if path is None or not path.startswith(home + "/"):
            continue
        jar.ok([tool, *command], env={"HOME": home, "PATH": os.environ["PATH"]})
        tried.append(tool)
    if "cargo" in tried:
        out = jar.shell(
            "cd made; cargo run --offline --quiet", timeout=55, env={"HOME": home, "PATH": os.environ["PATH"]}
        )
        assert out == "Hello, world!\n"
    print("tried", tried)
