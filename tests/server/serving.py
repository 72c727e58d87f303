"""A server to test: `belljar serve` as a child of ours, for root or for an ordinary user.

    Server   the process, its tokens and its addresses
    Client   one token's requests; answers are (status, headers, body)
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time

import jar as jars

PATIENCE = 30 * jars.SLOWER
TOKENS = {
    "boss": ("admin", "boss-token-0123456789abcdef"),
    "ann": ("run,approve", "ann-token-0123456789abcdef"),
    "bob": ("run,approve", "bob-token-0123456789abcdef"),
    "eye": ("read", "eye-token-0123456789abcdef"),
    "tool": ("dispatch", "tool-token-0123456789abcdef"),
}


class Answer:
    def __init__(self, status: int, headers, body: bytes):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self) -> dict:
        error = self.json["error"]
        assert set(error) == {"type", "message", "hint"} and error["hint"], error
        return error

    def __repr__(self) -> str:
        return f"<{self.status} {self.body[:2000]!r}>"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self.path)


def owner_key(socket_path: str, folder) -> str:
    """What `belljar sessions` and `approvals` prove themselves with."""
    about = os.stat(socket_path)
    path = pathlib.Path(folder) / f"key-{about.st_dev}-{about.st_ino}"
    assert path.stat().st_mode & 0o777 == 0o600
    return path.read_text().strip()


class Client:
    def __init__(self, server: Server, token: str | None):
        self.server = server
        self.token = token

    def __call__(self, method: str, path: str, body=None, headers: dict | None = None, **fields) -> Answer:
        """Fields are a JSON body; `body` is bytes as they are."""
        headers = dict(headers or {})
        if self.token is not None:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        if fields:
            body = json.dumps(fields).encode()
            headers.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())

    def get(self, path: str, **headers) -> Answer:
        return self("GET", path, headers=headers)

    def post(self, path: str, **fields) -> Answer:
        return self("POST", path, **fields)

    def delete(self, path: str) -> Answer:
        return self("DELETE", path)

    def session(self, **fields) -> str:
        answer = self.post("/v1/sessions", **fields)
        assert answer.status == 201, answer
        return answer.json["id"]

    def python(self, session: str, code: str, **fields) -> dict:
        answer = self.post(f"/v1/sessions/{session}/python", code=code, **fields)
        assert answer.status == 200, answer
        return answer.json

    def stream(self, method: str, path: str, headers: dict | None = None, **fields) -> Events:
        return Events(self, method, path, headers, fields)


class Events:
    """Server-sent events as they come: (event, data)."""

    def __init__(self, client: Client, method: str, path: str, headers: dict | None, fields: dict):
        headers = {"Authorization": f"Bearer {client.token}", "Accept": "text/event-stream", **(headers or {})}
        body = None
        if fields:
            body = json.dumps(fields).encode()
            headers["Content-Type"] = "application/json"
        self.connection = http.client.HTTPConnection("127.0.0.1", client.server.port, timeout=PATIENCE)
        self.connection.request(method, path, body, headers)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, (self.answer.status, self.answer.read())

    def __enter__(self) -> Events:
        return self

    def __exit__(self, *failure) -> None:
        self.connection.close()

    def __iter__(self):
        event = None
        while line := self.answer.readline():
            text = line.decode().rstrip("\n")
            if text.startswith("event: "):
                event = text[7:]
            elif text.startswith("data: "):
                yield event, json.loads(text[6:])

    def until(self, wanted: str) -> dict:
        for event, data in self:
            if event == wanted:
                return data
        raise AssertionError(f"the stream ended without {wanted}")


class Server:
    def __init__(self, scene: jars.Scene, *flags: str, config: str = "", tokens: dict | None = None,
                 profile: str = "developer", session: str = "",
                 environment: dict | None = None, skills: str = "", audit: str = "none", own_state: str = "",
                 wrapper: list[str] | None = None, brought=lambda identity, argv: argv):
        self.scene = scene
        self.identity = scene.identity
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="serve-", dir=scene.home))
        self.token_file = self.folder / "tokens"
        self.socket_path = str(self.folder / "s.sock")
        self.config_file = self.folder / "config.toml"
        self.write_tokens(TOKENS if tokens is None else tokens)
        kept = skills or f"{self.folder}/skills"
        self.config_file.write_text(
            f'[session]\npreload = []\ngrace = "700ms"\n{session}\n[server]\nlisten = ["127.0.0.1:0"]\n'
            f'socket = "{self.socket_path}"\nskills_dir = "{kept}"\n{config}\n'
        )
        self.identity.own(self.folder, self.config_file)
        self._errors = open(self.folder / "errors", "w+b")
        surroundings = {**jars.Outside(scene).environment(), "HOME": str(scene.home)}
        for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
            surroundings.pop(name, None)
        surroundings["XDG_RUNTIME_DIR"] = str(self.folder)
        surroundings.update(environment or {})
        places = [f"--token-file={self.token_file}", f"--audit={audit}"]
        if own_state:  # tokens and audit trail where they are when nothing is said of them
            surroundings["XDG_STATE_HOME"] = own_state
            places = []
        self.process = subprocess.Popen(
            self.identity.command(brought(self.identity, [
                *(wrapper or []), jars.binary(), "serve", f"--config={self.config_file}", f"--profile={profile}",
                *places, *flags,
            ])),
            cwd=scene.home, env=surroundings, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._errors,
        )  # fmt: skip
        self.port = self._wait_until_ready()

    def write_tokens(self, tokens: dict) -> None:
        lines = "".join(f"{name} {scopes} {token}\n" for name, (scopes, token) in tokens.items())
        if lines:
            self.token_file.write_text(lines)
            self.token_file.chmod(0o600)
            self.identity.own(self.token_file)

    def owner_key(self, socket_path: str = "") -> str:
        return owner_key(socket_path or self.socket_path, self.folder / "belljar")

    def errors(self) -> str:
        return (self.folder / "errors").read_text(errors="replace")

    def _wait_until_ready(self) -> int:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            text = self.errors()
            if "belljar: ready" in text:
                found = re.search(r"listening on 127\.0\.0\.1:(\d+)", text)
                return int(found[1]) if found else 0
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}: {text}")
            time.sleep(0.02)
        raise RuntimeError(f"the server is not ready: {self.errors()}")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *failure) -> None:
        # The first asks it to end when its calls have, the second at once. Killed, it would leave its folder.
        for patience in (0.2, PATIENCE):
            if self.process.poll() is None:
                self.process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(patience)
        self.kill()
        self._errors.close()

    def client(self, name: str | None) -> Client:
        return Client(self, TOKENS[name][1] if name else None)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)

    def raw(self, request: bytes) -> bytes:
        """All that comes back until the server closes."""
        with self.connect() as connection:
            connection.sendall(request)
            return read_all(connection)

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def wait(self) -> int:
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(PATIENCE)

    def gauge(self, name: str) -> float:
        text = self.client("boss").get("/metrics").body.decode()
        return float(re.search(rf"^{name} (\S+)$", text, re.MULTILINE)[1])

    def guests(self) -> list[int]:
        """All below the server, at whatever depth."""
        return descendants(self.process.pid)


def read_all(connection: socket.socket) -> bytes:
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def descendants(pid: int) -> list[int]:
    found = []
    with contextlib.suppress(OSError):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *descendants(int(child))]
    return found


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def wait_until(condition, patience: float = PATIENCE) -> bool:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())
