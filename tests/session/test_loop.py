"""What the event loop is not held up by: it is the same for all sessions."""

from __future__ import annotations

import pathlib
import time

import pytest

import jar as jars
from engine import SLOWER, Engine, Refused

MANY = 40


@pytest.fixture
def engine(identity):
    with jars.Scene(identity) as scene, Engine(scene, settings={"max_sessions": MANY + 1}) as made:
        yield made


def running_ms(engine: Engine) -> float:
    """How long the loop's thread, which is the first, has been running on a processor."""
    return int(pathlib.Path(f"/proc/{engine.pid}/task/{engine.pid}/schedstat").read_text().split()[0]) / 1e6


def asked(engine: Engine) -> float:
    """Seconds until something is answered that the loop need not think about."""
    pending = engine.send("interrupt", session="nobody")
    with pytest.raises(Refused):
        pending.wait()
    return pending.seconds


def open_many(engine: Engine) -> list:
    boxes = [engine.box() for _ in range(MANY)]
    for pending in [box.send_shell("sleep 1000 & sleep 1000 & true") for box in boxes]:
        assert pending.wait().status == "success"
    return boxes


def test_what_many_sessions_use_is_not_summed_up_on_the_loop(engine):
    boxes = open_many(engine)
    assert len(engine.sessions()) == MANY  # what is done once
    held = []
    for _ in range(5):
        time.sleep(0.3)  # older than that it is measured again
        before = running_ms(engine)
        sessions = engine.sessions()
        held.append(running_ms(engine) - before)
        assert len(sessions) == MANY and min(session["memory_kb"] for session in sessions) > 0
    assert min(held) < MANY / 10, f"{held} ms for {MANY} sessions"
    for box in boxes:
        box.close()


def test_the_loop_does_not_wait_until_sessions_that_are_closed_have_gone(engine):
    boxes = open_many(engine)
    alone = max(asked(engine) for _ in range(10))
    closing = [engine.send("close", session=box.name) for box in boxes]
    beside = asked(engine)
    for pending in closing:
        pending.wait()
    assert beside < alone + MANY * 0.005 * SLOWER, f"{beside:.3f} s after {MANY} were closed, else {alone:.3f} s"
    end = time.monotonic() + 30 * SLOWER
    while engine.guests() and time.monotonic() < end:
        time.sleep(0.05)
    assert engine.guests() == []  # and they do go
