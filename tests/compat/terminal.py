"""A person at a terminal: types, looks at the screen, resizes the window."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

from jar import SLOWER

CTRL_C = "\x03"
CTRL_D = "\x04"
CTRL_Z = "\x1a"
CTRL_BACKSLASH = "\x1c"


class Terminal:
    def __init__(self, argv: list[str], *, cwd, env, owner: int):
        self.screen = ""
        self.seen = 0
        self.master, slave = pty.openpty()
        self.resize(24, 80)
        os.fchown(slave, owner, -1)
        self.process = subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(slave)

    def __enter__(self) -> Terminal:
        self.expect("outer> ")
        return self

    def __exit__(self, *failure) -> None:
        print(f"--- the terminal showed\n{self.screen!r}")
        # A hang-up is what a closed window is; the shell and its jobs end by it.
        os.close(self.master)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def type(self, line: str) -> None:
        self.press(line + "\n")

    def expect(self, text: str, seconds: float = 10) -> str:
        """Waits until the text is on the screen, after what was expected before; what came until then."""
        end = time.monotonic() + seconds * SLOWER
        while True:
            at = self.screen.find(text, self.seen)
            if at >= 0:
                between = self.screen[self.seen : at]
                self.seen = at + len(text)
                return between
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.master], [], [], left)[0]:
                raise AssertionError(f"waited for {text!r}; the terminal showed {self.screen[self.seen:]!r}")
            try:
                self.screen += os.read(self.master, 65536).decode(errors="replace")
            except OSError as closed:
                raise AssertionError(f"waited for {text!r}; the terminal ended: {self.screen!r}") from closed
