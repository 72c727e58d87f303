"""Drives src/session/worker.py as the engine does, without belljar: four pipes.

    with Worker(python) as worker:
        worker.run("1 + 1").repr == "2"

Needs nothing but Python's own library.
"""

from __future__ import annotations

import dataclasses
import functools
import glob
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time

SESSION = pathlib.Path(__file__).parents[2] / "src" / "session"
SLOWER = int(os.environ.get("BELLJAR_TEST_SLOWER", "1"))
PATIENCE = 30 * SLOWER
LOST = 86
SYSTEM_PYTHON = "/usr/bin/python3"

BOOT = """
import os, sys
sys.path[:1] = []
answers = int(sys.argv[1])
os.chdir(sys.argv[2])  # only now: with -c, Python 3.13 imports linecache before this line, from where it is
def read(count):
    data = b""
    while len(data) < count: data += os.read(0, count - len(data))
    return data
names = {"__name__": "belljar_worker"}
exec(read(int.from_bytes(read(4), "little")), names)
for fd in (0, answers): os.set_blocking(fd, sys.argv[3] == "blocking")
warm = sys.argv[4:]
if warm:
    print(*names["prepare"](warm), flush=True)
    if os.fork(): os.wait(); os._exit(0)
    names["after_fork"]()
names["main"](answers)
"""


@functools.lru_cache
def pythons() -> dict[str, str]:
    """Every Python from 3.8 to 3.13 on this machine, one of each; Debian's own first. The quick tier has that, the
    oldest and the newest."""
    candidates = [SYSTEM_PYTHON]
    candidates += filter(None, (shutil.which(f"python3.{minor}") for minor in range(8, 14)))
    candidates += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")))
    found = {}
    for candidate in candidates:
        asked = subprocess.run([candidate, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True)
        if asked.returncode == 0:
            major, minor = map(int, asked.stdout.split())
            if major == 3 and 8 <= minor <= 13:
                found.setdefault(f"3.{minor}", candidate)
    if os.environ.get("BELLJAR_LONG") == "1":
        return found
    ends = {min(found, key=minor_of), max(found, key=minor_of), next(iter(found))}
    return {version: path for version, path in found.items() if version in ends}


def minor_of(version: str) -> int:
    return int(version.split(".")[1])


class Died(Exception):
    """The worker closed its pipe; args[0] is its exit status."""


@dataclasses.dataclass
class Answer:
    frame: dict
    displays: list[dict]
    stdout: str
    stderr: str
    raw: bytes

    status = property(lambda self: self.frame["status"])
    result = property(lambda self: self.frame["result"])
    repr = property(lambda self: self.result and self.result["repr"])
    data = property(lambda self: self.result["data"])
    exception = property(lambda self: self.frame["exception"])
    traceback = property(lambda self: self.exception["traceback"])

    def images(self) -> list[str]:
        return [one["image/png"] for one in self.displays if "image/png" in one]


class Pipe:
    """One of the worker's output pipes, read all the time as the engine does."""

    def __init__(self):
        self.fd, self.write_fd = os.pipe()
        self.data, self.lock = bytearray(), threading.Lock()
        self.reader = threading.Thread(target=self.pump, daemon=True)
        self.reader.start()

    def pump(self):
        while True:
            piece = os.read(self.fd, 1 << 20)
            with self.lock:
                if not piece:
                    return
                self.data += piece

    def take(self) -> bytes:
        """What is in the pipe now: a pipe is in order, so a mark that we write comes after it."""
        mark = b"\0mark%d\0" % time.perf_counter_ns()
        os.write(self.write_fd, mark)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with self.lock:
                at = self.data.find(mark)
                if at >= 0:
                    found = bytes(self.data[:at])
                    del self.data[: at + len(mark)]
                    return found
            time.sleep(0.0005)
        raise TimeoutError("a pipe that nobody drained")

    def close(self):
        os.close(self.write_fd)
        self.reader.join(1)
        if not self.reader.is_alive():
            os.close(self.fd)


class Worker:
    def __init__(self, python: str = SYSTEM_PYTHON, *, warm=(), nonblocking=False, limits=None, files=(), **setup):
        self.folder = tempfile.mkdtemp(prefix="belljar-test-")
        for name in files:  # each would end the worker, if it were imported
            pathlib.Path(self.folder, name).write_text("import os; os._exit(99)")
        requests, ours = os.pipe()
        answers, theirs = os.pipe()
        self.requests, self.answers = os.fdopen(ours, "wb", 0), os.fdopen(answers, "rb", 0)
        self.out, self.err, self.id, self.asked_to_stop = Pipe(), Pipe(), 0, False
        self.process = subprocess.Popen(
            [python, "-c", BOOT, str(theirs), self.folder, "not" if nonblocking else "blocking", *warm],
            cwd="/", start_new_session=True,
            stdin=requests, stdout=self.out.write_fd, stderr=self.err.write_fd,
            pass_fds=[theirs], preexec_fn=limits,
            env={"PATH": os.environ["PATH"], "HOME": self.folder, "LC_ALL": "C"},
        )  # fmt: skip
        os.close(requests)
        os.close(theirs)
        source = (SESSION / "worker.py").read_bytes()
        try:
            self.write(source)
            self.send({"op": "setup", "display": (SESSION / "worker_display.py").read_text(), **setup})
            self.ready = self.receive()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.requests.close()
        self.answers.close()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(PATIENCE)
        self.out.close()
        self.err.close()
        shutil.rmtree(self.folder)

    def write(self, body: bytes):
        view = memoryview(len(body).to_bytes(4, "little") + body)
        try:
            while view:
                view = view[self.requests.write(view) :]
        except BrokenPipeError:
            raise Died(self.process.wait(PATIENCE)) from None

    def send(self, request: dict):
        self.write(json.dumps(request).encode())

    def exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            self.ask_again()
            piece = self.answers.read(count - len(data))
            if not piece:
                raise Died(self.process.wait(PATIENCE))
            data += piece
        return bytes(data)

    def receive(self) -> dict:
        self.frame_size = int.from_bytes(self.exactly(4), "little")
        # Strict, as the engine's parser is: no NaN, and no half of a surrogate pair.
        text = self.exactly(self.frame_size).decode()
        frame = json.loads(text, parse_constant=lambda name: 1 / 0)
        text.encode()
        return frame

    def start(self, code: str) -> int:
        self.id += 1
        self.asked_to_stop = False
        self.send({"op": "execute", "id": self.id, "code": code})
        return self.id

    def finish(self) -> Answer:
        displays, self.largest = [], 0
        while True:
            frame = self.receive()
            self.largest = max(self.largest, self.frame_size)
            if frame["op"] == "display":
                displays.append(frame["data"])
                continue
            assert (frame["op"], frame["id"]) == ("done", self.id)
            raw = self.out.take()
            error = self.err.take().decode()
            return Answer(frame, displays, raw.decode(errors="replace"), error, raw)

    def run(self, code: str) -> Answer:
        self.start(code)
        return self.finish()

    def good(self, code: str) -> Answer:
        answer = self.run(code)
        assert answer.status == "success", answer.traceback
        return answer

    def interrupt(self):
        os.kill(self.ready["pid"], signal.SIGINT)
        self.asked_to_stop = True

    def ask_again(self):
        """Each second, as the engine does: one that comes when Python is about to wait is seen after that."""
        end = time.monotonic() + PATIENCE
        while self.asked_to_stop and time.monotonic() < end and not select.select([self.answers], [], [], 1)[0]:
            self.interrupt()

    def wait_for(self, text: str, asking: bool = False):
        """Until the guest has printed this; `asking`: because of an interrupt, see ask_again."""
        end = time.monotonic() + PATIENCE
        again = time.monotonic() + 1
        while time.monotonic() < end:
            with self.out.lock:
                if text.encode() in self.out.data:
                    return
            if asking and time.monotonic() > again:
                self.interrupt()
                again += 1
            time.sleep(0.0005)
        raise TimeoutError(f"never printed: {text}")
