"""Sessions whose interpreter is a fork of a warm one: they are like the others, and start at once."""

from __future__ import annotations

import contextlib
import time

import pytest

from boxes import engines  # noqa: F401
from engine import SLOWER, Engines, Refused, wait_until_warm

SOON = 5 * SLOWER
WARM = {"preload": ["numpy", "json"], "python": "/usr/bin/python3"}


@pytest.fixture
def engine(engines: Engines, identity, profile):
    made = engines.get(identity, profile, settings=WARM)
    wait_until_warm(made)
    return made


@pytest.fixture
def box(engine):
    made = engine.box()
    yield made
    made.close()


def test_the_answer_says_that_it_was_warm_and_only_once(box):
    first = box.python("x = 1")
    assert first.started == "warm" and first.notes == []
    assert box.python("x").started is None


def test_what_was_imported_is_there_and_works(box):
    assert box.value("import sys; 'numpy' in sys.modules") == "True"
    assert box.value("import numpy; int(numpy.arange(10).sum())") == "45"


def test_two_sessions_have_different_random_numbers(engine):
    code = "import random, numpy, uuid, os; (random.random(), numpy.random.rand(), uuid.uuid4().hex, os.urandom(4))"
    first, second = engine.box(), engine.box()
    one, two = first.value(code), second.value(code)
    for mine, other in zip(one.strip("()").split(","), two.strip("()").split(",")):
        assert mine != other
    first.close()
    second.close()


def test_state_lasts_and_a_timeout_keeps_it(box):
    box.python("x = 7")
    answer = box.python("import time\nwhile True: time.sleep(1)", timeout_ms=300)
    assert answer.status == "timeout" and answer.interrupted and not answer.killed
    assert box.value("x") == "7"


def test_an_interrupt_at_the_end_of_a_call_does_not_reach_the_next(box):
    """A call that ends at its time limit, so that the interrupt and the answer cross."""
    for n in range(100):
        box.python(f"import time; time.sleep({0.018 + n % 20 / 5000})", timeout_ms=20)
        assert box.python("sum(range(20000))").status == "success"


def test_one_that_does_not_stop_is_killed_and_replaced_by_a_warm_one(box):
    code = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(1)"
    answer = box.python(code, timeout_ms=300)
    assert answer.killed and answer.state_lost
    assert box.python("1").started == "warm"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import os; os._exit(3)", "exited with code 3"),
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
        ("import os; os.kill(os.getpid(), 9)", "SIGKILL"),
    ],
)
def test_how_it_ended_is_told(box, code, says):
    answer = box.python(code)
    assert answer.status == "error" and answer.state_lost and answer.says(says), answer.notes
    assert box.value("1 + 1") == "2"


def test_one_that_dies_between_calls_is_replaced_and_said(box):
    box.python("import os, threading\nthreading.Timer(0.05, os._exit, (5,)).start()")
    time.sleep(0.3)  # nothing says when it has happened
    answer = box.python("1 + 1")
    assert answer.result == "2" and answer.says("fresh"), answer.notes


def test_one_that_stops_itself_is_continued(box):
    began = time.monotonic()
    assert box.value("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n5", timeout_ms=20_000) == "5"
    assert time.monotonic() - began < SOON


def test_it_lives_with_the_shell(box):
    pid = box.value("import os; open('seen', 'w').write('x'); os.getpid()")
    assert box.shell(f"cat seen; kill -0 {pid} && echo alive").stdout == "xalive\n"
    box.python("import subprocess; child = subprocess.Popen(['sleep', '1000'])")
    assert box.value("child.poll() is None") == "True"


def test_reset_gives_another_warm_one(box):
    box.python("x = 1")
    box.reset()
    answer = box.python("'x' in globals()")
    assert answer.result == "False" and answer.started == "warm"


def test_it_cannot_leave_a_child_to_the_interpreter_it_was_forked_from(engine):
    """Which would never wait for it, and the jar could not end."""
    box = engine.box()
    code = "clone = 56 if os.uname().machine == 'x86_64' else 220\nctypes.CDLL(None).syscall(clone, 0x8000 | 17, 0, 0, 0, 0)"
    assert box.value("import ctypes, os\n" + code) == "-1"  # CLONE_PARENT
    began = time.monotonic()
    box.close()
    assert time.monotonic() - began < SOON


def test_no_descriptor_of_others_is_there(box):
    code = (
        "import os\n"
        "kinds = {}\n"
        "for fd in os.listdir('/proc/self/fd'):\n"
        "    try: kinds[int(fd)] = os.readlink(f'/proc/self/fd/{fd}').split(':')[0]\n"
        "    except OSError: pass\n"
        "sorted(k for fd, k in kinds.items() if fd > 3)"
    )
    allowed = {"pipe", "/dev/null", "anon_inode"}
    assert set(eval(box.value(code))) <= allowed


def test_a_policy_or_interpreter_of_its_own_starts_cold_or_warm_but_always(engine):
    name = engine.call("open", profile="public-bot").session
    answer = engine.call("python", session=name, code="1 + 1")
    assert answer.result == "2" and answer.started in ("warm", "cold")
    engine.call("close", session=name)


def test_a_guest_that_stops_forks_on_their_way_holds_only_itself_up_and_not_for_long(engine):
    """Within the time of the call, or the few seconds that anything has that starts."""
    box, other = engine.box(), engine.box()
    box.python(
        """
import os, signal
next_pid = os.getpid() + 3
ready, tell = os.pipe()
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        os.write(tell, b"x")
        while True:
            for pid in range(next_pid, next_pid + 8):
                try: os.kill(pid, signal.SIGSTOP)
                except OSError: pass
while len(os.read(ready, 1)) + len(os.read(ready, 1)) < 2: pass
"""
    )
    waiting = [
        engine.send("reset", session=box.name),
        box.send_python("1", timeout_ms=1000),
        box.send_python("2", timeout_ms=1000),
    ]
    for pending in waiting:
        with contextlib.suppress(Refused):
            pending.wait(20 * SLOWER)
        assert pending.seconds < 15 * SLOWER
    assert other.python("1").status == "success"
    box.close()
    other.close()
