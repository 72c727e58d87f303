"""Many sessions at once, and many calls: all answers right, memory flat, nothing left."""

from __future__ import annotations

import os
import pathlib
import random
import time

import pytest

import jar as jars
from engine import SLOWER, Engine, wait_until_warm

LONG = os.environ.get("BELLJAR_LONG") == "1"
SESSIONS = 500 if LONG else 60
CALLS = 100_000 if LONG else 3_000
PATIENCE = 1200 * SLOWER
PLOT = """
import matplotlib.pyplot as plt
plt.plot([{n}, {n} + 1])
plt.show()
{n} * 2
"""


def used_kb(pids) -> int:
    """Private memory, and a share of what is shared."""
    total = 0
    for pid in pids:
        try:
            for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
        except OSError:
            pass
    return total


@pytest.fixture
def scene(identity):
    with jars.Scene(identity) as made:
        yield made


def test_many_sessions_at_once_each_with_a_plot(scene):
    settings = {
        "max_sessions": SESSIONS, "python": "/usr/bin/python3", "python_timeout": 600_000,
        "preload": ["numpy", "matplotlib.pyplot"],
    }  # fmt: skip
    with Engine(scene, "developer", settings) as engine:
        wait_until_warm(engine)
        began = time.monotonic()
        waiting = [engine.box(f"many-{n}").send_python(PLOT.format(n=n)) for n in range(SESSIONS)]
        for n, pending in enumerate(waiting):
            answer = pending.wait(PATIENCE)
            assert answer.status == "success" and answer.result == str(n * 2), answer
            assert len(answer.images) == 1 and answer.started == "warm", answer.notes
        took = time.monotonic() - began
        assert len(engine.sessions()) == SESSIONS
        peak = used_kb([engine.pid, *engine.guests()])
        for n in range(SESSIONS):
            engine.call("close", session=f"many-{n}")
        assert engine.sessions() == []
        print(f"{SESSIONS} sessions: {took:.1f} s, {peak / 1024:.0f} MiB, {peak / SESSIONS / 1024:.1f} MiB each")
        pid = engine.pid
    assert not list(pathlib.Path("/tmp").glob(f"belljar-{pid}-*"))


def test_many_calls_leave_memory_flat(scene):
    boxes = 50 if LONG else 10
    with Engine(scene, "developer", {"max_sessions": boxes, "preload": []}) as engine:
        order = random.Random(7)
        state = [0] * boxes

        def calls(count: int):
            for _ in range(count // boxes):
                waiting = []
                for n in order.sample(range(boxes), boxes):
                    box = engine.box(f"soak-{n}")
                    if order.random() < 0.2:
                        waiting.append((box.send_shell("x=$((x + 1)); echo $x"), None))
                    else:
                        state[n] += 1
                        code = "x = globals().get('x', 0) + 1; print('y' * 100); x"
                        waiting.append((box.send_python(code), str(state[n])))
                for pending, expected in waiting:
                    answer = pending.wait(PATIENCE)
                    assert answer.status == "success", answer
                    assert expected is None or answer.result == expected

        calls(CALLS // 5)  # whatever is made once is made
        engine_before, guests_before = engine.memory_kb(), used_kb(engine.guests())
        calls(CALLS)
        engine_after, guests_after = engine.memory_kb(), used_kb(engine.guests())
        print(f"{CALLS} calls: engine {engine_before} -> {engine_after} kB, guests {guests_before} -> {guests_after} kB")
        assert engine_after - engine_before < 2_000
        assert guests_after - guests_before < 500 * boxes
        assert len(os.listdir(f"/proc/{engine.pid}/fd")) < 40 * boxes
