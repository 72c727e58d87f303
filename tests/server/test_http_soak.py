"""A server that is used, abused and left alone again is as it was: 20 s, or 20 minutes in the long tier."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pathlib
import random
import signal
import tempfile
import threading
import time

import pytest
import serving

LONG = os.environ.get("BELLJAR_LONG") == "1"
SECONDS = 1200 if LONG else 20
CLIENTS = 4
MOST_THREADS = 1 + 5 * 4  # the loop, and those beside it that are made when they are first needed
CODES = [
    "1+1", "print('x' * 100000)", "import os\nos.urandom(10)", "open('f', 'w').write('y' * 100000)", "1/0",
    "import time\ntime.sleep(0.3)", "import subprocess\nsubprocess.Popen(['sleep', '100'])",
    "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "import os\nos._exit(3)", "while True: pass",
    "import threading\n[threading.Thread(target=lambda: None).start() for _ in range(20)]", "x = bytearray(30_000_000)",
]  # fmt: skip


class Soaker:
    """One client that does whatever comes to its mind. `unexpected` is what must not have been."""

    def __init__(self, server: serving.Server, token: str, seed: int, until: float):
        self.client = server.client(token)
        self.server = server
        self.random = random.Random(seed)
        self.until = until
        self.sessions: list[str] = []
        self.unexpected: list[str] = []
        self.failures: list[str] = []
        self.kills = 0
        self.done = 0
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        try:
            while time.monotonic() < self.until:
                self.random.choice([self.open, self.close, self.call, self.call, self.call, self.file, self.tool,
                                    self.hang_up, self.hang_up, self.look, self.kill])()  # fmt: skip
                self.done += 1
            while self.sessions:
                self.close()
        except Exception as error:  # a thread's own failure is the test's
            self.unexpected.append(repr(error))

    def expect(self, answer: serving.Answer, *statuses: int) -> serving.Answer:
        if answer.status == 503 and answer.error["type"] == "session_failed":
            self.failures.append(repr(answer))  # what we kill while it starts cannot start
        elif answer.status not in statuses:
            self.unexpected.append(repr(answer))
        return answer

    def session(self) -> str:
        if not self.sessions:
            self.open()
        return self.random.choice(self.sessions)

    def open(self) -> None:
        if len(self.sessions) < 4:
            self.sessions.append(self.expect(self.client.post("/v1/sessions"), 201).json["id"])

    def close(self) -> None:
        if self.sessions:
            session = self.sessions.pop(self.random.randrange(len(self.sessions)))
            self.expect(self.client.delete(f"/v1/sessions/{session}"), 204)

    def call(self) -> None:
        code = self.random.choice(CODES)
        if self.random.random() < 0.2:
            self.expect(self.client.post("/v1/execute/python", code=code, timeout_ms=700), 200)
        elif self.random.random() < 0.3:
            commands = [self.random.choice(["ls", "exit 3", "sleep 0.2", "sleep 50 &", "kill -9 $$", "yes | head -c 200000"])]
            self.expect(self.client.post(f"/v1/sessions/{self.session()}/shell", commands=commands, timeout_ms=700), 200)
        elif self.random.random() < 0.3:
            fields = {"arguments": self.random.choice([["true"], ["sleep", "9"], ["nothing"]]), "timeout_ms": 300}
            self.expect(self.client.post(f"/v1/sessions/{self.session()}/spawn", **fields), 200)
        else:
            self.expect(self.client.post(f"/v1/sessions/{self.session()}/python", code=code, timeout_ms=700), 200)

    def file(self) -> None:
        path = f"/v1/sessions/{self.session()}/files/{self.random.choice('abc')}"
        self.expect(self.client("PUT", path, os.urandom(self.random.randrange(100_000))), 201)
        self.expect(self.client.get(path), 200)

    def tool(self) -> None:
        path = f"/v1/sessions/{self.session()}/tools/{self.random.choice(['glob', 'grep'])}"
        self.expect(self.client("POST", path, b'{"pattern": "*"}', {"Content-Type": "application/json"}), 200)

    def look(self) -> None:
        self.expect(self.client.get(self.random.choice(["/v1/sessions", "/metrics", "/v1/tools", "/openapi.json"])), 200)

    def hang_up(self) -> None:
        """Asks for something, and goes at some moment."""
        body = json.dumps({"code": self.random.choice(CODES), "timeout_ms": 700, "stream": True}).encode()
        headers = {"Authorization": f"Bearer {self.client.token}", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=serving.PATIENCE)
        with contextlib.closing(connection):
            if self.random.random() < 0.3:
                connection.request("GET", "/v1/events", headers=headers)
            else:
                connection.request("POST", f"/v1/sessions/{self.session()}/python", body, headers)
            if self.random.random() < 0.5:
                time.sleep(self.random.random() / 5)

    def kill(self) -> None:
        """Something inside a session dies from outside, as the kernel's own killer would have it."""
        guests = self.server.guests()
        if guests and self.random.random() < 0.3:
            with contextlib.suppress(OSError):
                os.kill(self.random.choice(guests), signal.SIGKILL)
                self.kills += 1


def state(server: serving.Server) -> dict:
    """What a leak would show in."""
    proc = pathlib.Path(f"/proc/{server.process.pid}")
    status = (proc / "status").read_text()
    return {
        "descriptors": len(os.listdir(proc / "fd")),
        "processes": len(server.guests()),
        "threads": int(status.split("Threads:")[1].split()[0]),
        "folders": len(scratch(server)),
        "memory_kb": int(status.split("VmRSS:")[1].split()[0]),
    }


def scratch(server: serving.Server) -> list[str]:
    """The server's own temporary folder, one entry for each session."""
    top = [each for each in pathlib.Path(tempfile.gettempdir()).glob(f"belljar-{server.process.pid}-*")]
    return [str(inner) for each in top for inner in each.iterdir()]


def settled(server: serving.Server, wanted: dict) -> bool:
    now = state(server)
    if now["threads"] > MOST_THREADS:
        return False
    return all(now[each] <= wanted[each] for each in ("descriptors", "processes", "folders"))


@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_a_server_that_was_used_and_abused_is_as_it_was(start):
    server = start(config="max_sessions_per_token = 64\nmax_requests = 200", session='idle = "10m"')
    boss = server.client("boss")
    for name in ("ann", "bob"):  # what is made once and kept is there before it is counted
        client = server.client(name)
        first = client.session()
        client.python(first, "1")
        client.post(f"/v1/sessions/{first}/shell", commands=["true"])
        client.delete(f"/v1/sessions/{first}")
    assert serving.wait_until(lambda: not scratch(server))
    before = state(server)
    until = time.monotonic() + SECONDS
    soakers = [Soaker(server, ("ann", "bob")[i % 2], i, until) for i in range(CLIENTS)]
    for soaker in soakers:
        soaker.thread.start()
    middle: dict | None = None
    while any(soaker.thread.is_alive() for soaker in soakers):
        time.sleep(1)
        if middle is None and time.monotonic() > until - SECONDS / 2:
            middle = state(server)
    for soaker in soakers:
        soaker.thread.join()
    unexpected = [each for soaker in soakers for each in soaker.unexpected]
    print(f"{sum(each.done for each in soakers)} actions; before {before}, in the middle {middle}")
    assert not unexpected, unexpected[:5]
    failures = [each for soaker in soakers for each in soaker.failures]
    assert len(failures) <= sum(each.kills for each in soakers), failures
    # All sessions are accounted for: those that were made were ended, and no others are there.
    assert serving.wait_until(lambda: boss.get("/v1/sessions").json["sessions"] == [])
    assert "belljar_sessions 0\n" in boss.get("/metrics").body.decode()
    assert serving.wait_until(lambda: settled(server, before), serving.PATIENCE * 2), (before, state(server))
    after = state(server)
    print(f"after {after}")
    # Memory that was freed need not go back; it must not go on growing.
    most = max(before["memory_kb"] * 2, (middle or before)["memory_kb"]) + 30_000
    assert after["memory_kb"] < most, (before, middle, after)
