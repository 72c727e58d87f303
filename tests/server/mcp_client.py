"""A client of `belljar mcp`: lines of JSON to a child of ours, for root or for an ordinary user."""

from __future__ import annotations

import itertools
import json
import os
import queue
import subprocess
import tempfile
import threading
import time

import jar as jars

PATIENCE = 60 * jars.SLOWER


class Client:
    def __init__(self, scene: jars.Scene, *flags: str, capabilities: dict | None = None, version="2025-11-25",
                 initialize: bool = True, brought=lambda identity, argv: argv):  # fmt: skip
        self.scene = scene
        self.errors = tempfile.TemporaryFile()
        self.audit = os.path.join(scene.home, "audit.jsonl")
        self.environment = {**jars.Outside(scene).environment(), "XDG_RUNTIME_DIR": str(scene.home)}
        self.process = subprocess.Popen(
            scene.identity.command(brought(scene.identity, [os.environ["BELLJAR"], "mcp", f"--audit={self.audit}", *flags])),
            cwd=scene.home, env=self.environment, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
        )  # fmt: skip
        self.messages: list[dict] = []
        self.requests: queue.Queue = queue.Queue()  # of the server's
        self._ids = itertools.count(1)
        self._news = threading.Condition()
        self.ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if initialize:
            self.hello = self.call(
                "initialize", protocolVersion=version, capabilities=capabilities or {},
                clientInfo={"name": "test", "version": "1"},
            )["result"]  # fmt: skip
            self.notify("notifications/initialized")

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.close()

    def _read(self):
        for line in self.process.stdout:
            message = json.loads(line)  # nothing else may be there
            assert message["jsonrpc"] == "2.0"
            with self._news:
                self.messages.append(message)
                self._news.notify_all()
            if "method" in message and "id" in message:
                self.requests.put(message)
        with self._news:
            self.ended = True
            self._news.notify_all()

    def send_text(self, text: str | bytes):
        self.process.stdin.write(text.encode() if isinstance(text, str) else text)
        self.process.stdin.flush()

    def send(self, method: str, **params) -> int:
        number = next(self._ids)
        self.send_text(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
        return number

    def notify(self, method: str, **params):
        self.send_text(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}) + "\n")

    def answer(self, request: dict, result: dict):
        self.send_text(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")

    def wait_for(self, found, patience=PATIENCE) -> dict:
        end = time.monotonic() + patience
        with self._news:
            while True:
                for message in self.messages:
                    if found(message):
                        return message
                assert not self.ended, f"it ended: {self.stderr()}"
                assert self._news.wait(max(0, end - time.monotonic())), f"nothing came: {self.messages[-5:]}"

    def wait(self, number: int, patience=PATIENCE) -> dict:
        return self.wait_for(lambda message: message.get("id") == number and "method" not in message, patience)

    def call(self, method: str, patience=PATIENCE, **params) -> dict:
        return self.wait(self.send(method, **params), patience)

    def send_tool(self, name: str, meta: dict | None = None, **arguments) -> int:
        more = {"_meta": meta} if meta else {}
        return self.send("tools/call", name=name, arguments=arguments, **more)

    def tool(self, name: str, **arguments) -> dict:
        answer = self.wait(self.send_tool(name, **arguments))
        assert "result" in answer, answer
        return answer["result"]

    def text(self, name: str, **arguments) -> str:
        return self.tool(name, **arguments)["content"][0]["text"]

    def notifications(self, method: str) -> list[dict]:
        return [message["params"] for message in list(self.messages) if message.get("method") == method]

    def belljar(self, *arguments: str, **options) -> subprocess.CompletedProcess:
        """Another command of the same person."""
        return subprocess.run(
            self.scene.identity.command([os.environ["BELLJAR"], *arguments]),
            cwd=self.scene.home, env=self.environment, capture_output=True, text=True, timeout=PATIENCE, **options,
        )  # fmt: skip

    def trail(self) -> list[dict]:
        with open(self.audit) as file:
            return [json.loads(line) for line in file]

    def stderr(self) -> str:
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def close(self) -> int:
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("it did not end") from None
        self._reader.join(5)
        self.process.stdout.close()
        return self.process.returncode
