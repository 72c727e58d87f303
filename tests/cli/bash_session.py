"""An interactive bash on a terminal, to press Tab in."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import tempfile
import time

INPUTRC = """
set bell-style none
set completion-query-items 0
set page-completions off
set completion-display-width 0
set enable-bracketed-paste off
set show-all-if-ambiguous on
set show-all-if-unmodified on
"""
PROMPT = "ready> "


class Bash:
    def __init__(self, folder: str, path: str):
        """In `folder`, with `path` as PATH."""
        with tempfile.NamedTemporaryFile("w", delete=False) as file:
            file.write(INPUTRC)
        self.inputrc = file.name
        environment = {"PATH": path, "PS1": PROMPT, "INPUTRC": self.inputrc, "TERM": "dumb", "COLUMNS": "200"}
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve("/bin/bash", ["bash", "--norc", "--noprofile", "-i"], environment)
        self._until(PROMPT)
        self.run(f"PS1='{PROMPT}'")

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)
        os.unlink(self.inputrc)

    def _read(self, seconds: float) -> str:
        ready, _, _ = select.select([self.fd], [], [], seconds)
        return os.read(self.fd, 65536).decode(errors="replace") if ready else ""

    def _until(self, text: str, seconds: float = 20) -> str:
        seen, end = "", time.monotonic() + seconds
        while text not in seen and time.monotonic() < end:
            seen += self._read(0.1)
        assert text in seen, f"bash did not answer: {seen!r}"
        return seen

    def run(self, line: str) -> str:
        """A command, and what it printed."""
        mark = f"end-{time.monotonic_ns()}"
        os.write(self.fd, f"{line}; echo {mark[:4]}''{mark[4:]}\n".encode())
        return self._until(mark + "\r\n")

    def tab(self, line: str) -> list[str]:
        """The words that bash offers for what is typed so far, or the one it filled in."""
        mark = f"end{time.monotonic_ns()}"
        os.write(self.fd, line.encode() + b"\t")
        time.sleep(0.15)
        # The mark goes behind what Tab made of the line; then the line is thrown away.
        os.write(self.fd, mark.encode())
        seen = self._until(mark)
        os.write(self.fd, b"\x05\x15")
        self.run(":")
        lines = [text.strip() for text in re.split(r"[\r\n]+", seen)]
        final = lines[-1].split(mark)[0]
        listed = [word for text in lines[1:-1] for word in text.split() if PROMPT.strip() not in text]
        return listed or [final.removeprefix(PROMPT).strip().split(" ")[-1]]
