"""An engine to test: session_driver as a child of ours, for root or for an ordinary user.

    Engine     the driver; requests are lines of JSON and may run at the same time
    Pending    a request that was sent: what it streams, and its answer
    Box        one session of an engine

The driver is named by BELLJAR_SESSION_DRIVER, or is beside the binary that BELLJAR names.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import pathlib
import queue
import subprocess
import tempfile
import threading
import time

import jar as jars

SLOWER = jars.SLOWER
PATIENCE = 60 * SLOWER  # longer than anything here may take


def driver_binary() -> str:
    beside = os.path.join(os.path.dirname(os.environ.get("BELLJAR", "")), "session_driver")
    path = os.environ.get("BELLJAR_SESSION_DRIVER", beside)
    if not os.access(path, os.X_OK):
        raise RuntimeError("BELLJAR must name the belljar binary, beside which session_driver lies")
    return os.path.abspath(path)


class EngineDied(Exception):
    pass


class Refused(Exception):
    """The engine answered with an error of its own."""


class Answer(dict):
    """A result, whose fields are attributes too."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no {name} in {self}") from None

    def file(self, name: str) -> dict | None:
        return next((file for file in self["files"] if file["name"] == name), None)

    def file_names(self) -> list[str]:
        return [file["name"] for file in self["files"]]

    def says(self, text: str) -> bool:
        return any(text in note for note in self["notes"])


class Pending:
    def __init__(self, engine: Engine, request: dict):
        self.engine = engine
        self.request = request
        self.began = time.monotonic()
        self.chunks: list[tuple[float, str, bytes]] = []  # when, which, what
        self._news = threading.Condition()
        self._answer: dict | None = None
        self.seconds = 0.0

    def take(self, message: dict) -> None:
        with self._news:
            if "bytes" in message:
                self.chunks.append((time.monotonic(), message["stream"], base64.b64decode(message["bytes"])))
            else:
                self._answer = message
                self.seconds = time.monotonic() - self.began
            self._news.notify_all()

    def fail(self) -> None:
        with self._news:
            self._news.notify_all()

    def streamed(self, stream: str = "stdout") -> bytes:
        return b"".join(what for _, which, what in list(self.chunks) if which == stream)

    def wait_for_output(self, text: bytes, patience: float = PATIENCE) -> None:
        """Until it has written this."""
        with self._news:
            heard = self._news.wait_for(
                lambda: text in self.streamed() or self._answer is not None or not self.engine.alive, patience
            )
        assert heard and text in self.streamed(), f"not heard: {text!r} in {self.streamed()!r}, {self._answer}"

    @property
    def answered(self) -> bool:
        return self._answer is not None

    def wait(self, patience: float = PATIENCE) -> Answer:
        with self._news:
            done = self._news.wait_for(lambda: self._answer is not None or not self.engine.alive, patience)
        if self._answer is None:
            if not self.engine.alive:
                raise EngineDied(self.engine.epitaph())
            raise AssertionError(f"no answer within {patience} s: {self.request}" if not done else "?")
        if "error" in self._answer:
            raise Refused(self._answer["error"])
        return Answer(self._answer)


class Engine:
    def __init__(
        self, scene: jars.Scene, profile: str = "developer", settings: dict | None = None, under: tuple = (), **limits
    ):
        """`under`: a command that starts it, as `prlimit --nofile=100`."""
        self.scene = scene
        self.identity = scene.identity
        self.profile = profile
        self._ids = itertools.count(1)
        self._pending: dict[int, Pending] = {}
        self._lock = threading.Lock()
        self._errors = tempfile.TemporaryFile()
        setup = {"profile": profile, "settings": {"grace": 700 * SLOWER, "preload": [], **(settings or {})}, **limits}
        self.process = subprocess.Popen(
            self.identity.command([*under, driver_binary(), json.dumps(setup)]),
            cwd=scene.home, env=jars.Outside(scene).environment(), start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
        )  # fmt: skip
        self._ended = False
        self._outbox: queue.SimpleQueue = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        threading.Thread(target=self._write, daemon=True).start()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *failure) -> None:
        self.close()

    # A large request must not block us while the driver writes.
    def _write(self) -> None:
        with contextlib.suppress(OSError):
            while (line := self._outbox.get()) is not None:
                self.process.stdin.write(line)
                self.process.stdin.flush()
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def _read(self) -> None:
        for line in self.process.stdout:
            message = json.loads(line)
            with self._lock:
                pending = self._pending.get(message["id"])
                if "bytes" not in message:
                    self._pending.pop(message["id"], None)
            if pending is not None:
                pending.take(message)
        self._ended = True
        for pending in list(self._pending.values()):
            pending.fail()

    @property
    def alive(self) -> bool:
        return not self._ended

    @property
    def pid(self) -> int:
        return self.process.pid  # setpriv has become the driver

    def epitaph(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self._errors.seek(0)
        return f"the driver ended with {self.process.returncode}: {self._errors.read()[-8000:].decode(errors='replace')}"

    def memory_kb(self) -> int:
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise EngineDied(self.epitaph())

    def cpu_seconds(self) -> float:
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    # ------------------------------------------------------------ requests

    def send(self, op: str, **request) -> Pending:
        request = {"id": next(self._ids), "op": op, **request}
        pending = Pending(self, request)
        with self._lock:
            self._pending[request["id"]] = pending
        self._outbox.put(json.dumps(request).encode() + b"\n")
        return pending

    def call(self, op: str, patience: float = PATIENCE, **request) -> Answer:
        return self.send(op, **request).wait(patience)

    def box(self, name: str | None = None) -> Box:
        return Box(self, name or f"box-{next(self._ids)}")

    def sessions(self) -> list[dict]:
        return self.call("list").sessions

    # ------------------------------------------------------------ its end

    def folders(self) -> list[pathlib.Path]:
        """Its temporary folders."""
        return list(pathlib.Path("/tmp").glob(f"belljar-{self.pid}-*"))

    def guests(self) -> list[int]:
        """All processes below it, inside jars or not; as the host numbers them."""
        found, waiting = [], [self.pid]
        while waiting:
            pid = waiting.pop()
            with contextlib.suppress(OSError):
                for task in os.listdir(f"/proc/{pid}/task"):
                    children = pathlib.Path(f"/proc/{pid}/task/{task}/children").read_text().split()
                    found += map(int, children)
                    waiting += map(int, children)
        return found

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> int:
        """As its own program would: it is told that no more requests come."""
        self._outbox.put(None)
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("the engine did not end") from None
        finally:
            self._reader.join(5)
            self.process.stdout.close()
        return self.process.returncode


def wait_until_warm(engine: Engine) -> None:
    """The interpreter that sessions are forked from is started beside them; without it each imports for itself."""
    end = time.monotonic() + 60 * SLOWER
    while True:
        box = engine.box()
        started = box.python("1").started
        box.close()
        if started == "warm":
            return
        assert time.monotonic() < end, "sessions do not start warm"
        time.sleep(0.2)


class Box:
    """One session."""

    def __init__(self, engine: Engine, name: str):
        self.engine = engine
        self.name = name

    def send_python(self, code: str, **options) -> Pending:
        return self.engine.send("python", session=self.name, code=code, **options)

    def send_shell(self, *commands: str, **options) -> Pending:
        return self.engine.send("shell", session=self.name, commands=list(commands), **options)

    def python(self, code: str, patience: float = PATIENCE, **options) -> Answer:
        return self.send_python(code, **options).wait(patience)

    def shell(self, *commands: str, patience: float = PATIENCE, **options) -> Answer:
        return self.send_shell(*commands, **options).wait(patience)

    def value(self, code: str, **options) -> str:
        """The repr of what a call that must succeed comes to."""
        answer = self.python(code, **options)
        assert answer.status == "success", answer
        return answer.result

    def reset(self) -> Answer:
        return self.engine.call("reset", session=self.name)

    def interrupt(self) -> Answer:
        return self.engine.call("interrupt", session=self.name)

    def close(self) -> None:
        with contextlib.suppress(Refused, EngineDied):
            self.engine.call("close", session=self.name)


class Engines:
    """One engine for each kind of setting, shared by the tests that need none of their own."""

    def __init__(self):
        self._clean = contextlib.ExitStack()
        self._engines: dict[tuple, Engine] = {}

    def get(self, identity: jars.Identity, profile: str, **settings) -> Engine:
        key = (identity.name, profile, json.dumps(settings, sort_keys=True))
        found = self._engines.get(key)
        if found is None or not found.alive:
            scene = self._clean.enter_context(jars.Scene(identity))
            found = self._engines[key] = Engine(scene, profile, **settings)
            self._clean.callback(found.close)
        return found

    def close(self) -> None:
        self._clean.close()
