"""Programs beside the workers, with pipes or a terminal of their own."""

from __future__ import annotations

import re
import signal
import time

import pytest

from boxes import box, engine, engines  # noqa: F401
from engine import PATIENCE, SLOWER, Refused


class Program:
    def __init__(self, box, *arguments: str, **options):
        self.box = box
        self.number = box.engine.call("spawn", session=box.name, arguments=list(arguments), **options).program
        self.seen = ""

    def do(self, **what):
        return self.box.engine.call("program", program=self.number, **what)

    def wait(self, seconds: float = PATIENCE):
        return self.do(wait_ms=int(seconds * 1000))

    def type(self, text: str):
        self.do(write=text)

    def expect(self, pattern: str) -> str:
        end = time.monotonic() + 20 * SLOWER
        while not (found := re.search(pattern, self.seen)):
            assert time.monotonic() < end, f"no {pattern!r} in {self.seen!r}"
            self.seen += self.wait(0.05).stdout
        before, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return before


def test_pipes_lead_both_ways_and_have_an_end(box):
    program = Program(box, "sh", "-c", "cat; echo err >&2; exit 4")
    program.type("hello")
    program.do(close=True)
    state = program.wait()
    assert (state.stdout, state.stderr, state.exit_code, state.running) == ("hello", "err\n", 4, False)
    with pytest.raises(Refused, match="reads no more"):
        program.type("more")


def test_a_program_sees_the_sessions_files_and_processes(box):
    box.python("open('shared', 'w').write('here')")
    program = Program(box, "sh", "-c", "cat shared; ps -e | grep -c python")
    assert program.wait().stdout == "here1\n"


def test_what_cannot_be_executed_is_said(box):
    with pytest.raises(Refused, match="nonesuch: No such file"):
        Program(box, "nonesuch")


def test_output_comes_while_it_runs_and_only_once(box):
    program = Program(box, "sh", "-c", "echo one; read x; echo two")
    program.expect("one\n")
    assert program.wait(0.01).stdout == ""
    program.type("\n")
    assert program.wait().stdout == "two\n"


def test_a_signal_reaches_it(box):
    program = Program(box, "sh", "-c", "trap 'echo got it; exit 9' USR1; echo ready; while :; do sleep 0.05; done")
    program.expect("ready")
    program.do(signal=int(signal.SIGUSR1))
    state = program.wait()
    assert "got it" in program.seen + state.stdout and state.exit_code == 9


def test_a_signal_that_ends_it_is_told(box):
    program = Program(box, "sleep", "1000")
    program.do(signal=int(signal.SIGKILL))
    assert program.wait().exit_code == 128 + signal.SIGKILL


def test_a_terminal_is_one(box):
    program = Program(box, "bash", "--norc", terminal=True)
    program.type("test -t 0 -a -t 1 -a -t 2 && echo is$((1))tty; stty size; exec 9</dev/tty && echo open$((1))\n")
    text = program.expect("open1")
    assert "is1tty" in text and "24 80" in text


def test_a_terminal_has_job_control(box):
    program = Program(box, "bash", "--norc", terminal=True)
    program.type("echo begin$((1)); sleep 1000\n")
    program.expect("begin1")
    time.sleep(0.2)  # as a person would: the shell gives the terminal to sleep
    program.type("\x1a")
    program.expect("Stopped")
    program.type("kill %1; wait; echo gone$((1)); sleep 1000\n")
    program.expect("gone1")
    time.sleep(0.2)
    program.type("\x03")
    program.type("echo code$?; exit 3\n")
    program.expect("code130")
    assert program.wait().exit_code == 3


def test_a_terminal_can_be_resized(box):
    program = Program(box, "bash", "--norc", terminal=True)
    program.type("trap 'stty size' WINCH; echo ready$((1))\n")
    program.expect("ready1")
    program.do(rows=50)
    program.type("\n")
    program.expect("50 100")


def test_pipes_have_no_size_and_a_terminal_no_end(box):
    with pytest.raises(Refused, match="no terminal"):
        Program(box, "sleep", "1000").do(rows=10)
    with pytest.raises(Refused, match="no end"):
        Program(box, "sleep", "1000", terminal=True).do(close=True)


def test_nothing_can_be_typed_for_it(box):
    """TIOCSTI, by which a program writes into the input of whoever reads its terminal next."""
    code = "import fcntl, termios\ntry: fcntl.ioctl(0, termios.TIOCSTI, b'x'); print('typed')\nexcept OSError: print('re' + 'fused')"
    program = Program(box, "python3", "-c", code, terminal=True)
    assert "refused" in program.expect("refused|typed")


def test_a_flood_is_bounded_and_the_end_comes(box):
    program = Program(box, "sh", "-c", "head -c 300000000 /dev/zero | tr '\\0' x; echo the end")
    state = program.wait()
    assert "bytes cut" in state.stdout and state.stdout.endswith("the end\n") and len(state.stdout) < 2_000_000


def test_a_program_that_does_not_read_is_not_sent_without_end(box):
    program = Program(box, "sleep", "1000")
    with pytest.raises(Refused, match="does not read"):
        for _ in range(40):
            program.type("x" * 1_000_000)


def test_programs_end_with_their_session(box):
    program = Program(box, "sh", "-c", "setsid sleep 1000 & sleep 1000", terminal=True)
    assert program.wait(0.05).running
    guests = set(box.engine.guests())
    box.close()
    end = time.monotonic() + 10 * SLOWER
    while set(box.engine.guests()) & guests and time.monotonic() < end:
        time.sleep(0.02)
    assert program.wait().exit_code is not None
