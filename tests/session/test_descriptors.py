"""Descriptors between guest and engine: no guest can hand one over, and the engine needs few.

The last close of a TCP socket waits as long as its owner chose (SO_LINGER), if there are unsent data. Who reads
from a unix socket without asking for descriptors closes those that were sent along. So a guest that shared a unix
socket with the engine could stop the engine's event loop, and with it all sessions and all limits.
"""

from __future__ import annotations

import contextlib
import pathlib
import time

import pytest

import jar as jars
from boxes import engine, engines, plain  # noqa: F401
from engine import SLOWER, Engine, Refused, wait_until_warm

LINGER = 8 * SLOWER
SOON = LINGER / 2

# A connection whose other side does not read, so that closing it takes LINGER seconds.
STUBBORN = f"""
import socket, struct, time
def stubborn():
    server = socket.create_server(("127.0.0.1", 0))
    mine = socket.create_connection(server.getsockname())
    theirs, _ = server.accept()
    mine.setblocking(False)
    try:
        while True: mine.send(bytes(1 << 16))
    except BlockingIOError: pass
    mine.setblocking(True)
    mine.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, {LINGER}))
    return mine, theirs, server
"""
# To every socket that the process holds.
HAND_OVER = """
import os
def sockets():
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink("/proc/self/fd/" + name).startswith("socket:"): yield int(name)
        except OSError: pass
held = list(sockets())
mine, theirs, server = stubborn()
for fd in held:
    with socket.socket(fileno=os.dup(fd)) as one:
        try: socket.send_fds(one, [b"x"], [mine.fileno()])
        except OSError as error: print(error)
mine.close()
print("held", len(held), flush=True)
"""


@pytest.fixture
def scene(identity):
    with jars.Scene(identity) as made:
        yield made


def test_the_last_close_of_such_a_socket_takes_long(plain):
    """The control: this is what would stop the loop."""
    box = plain.box()
    code = STUBBORN + "mine, theirs, server = stubborn()\nbegan = time.monotonic()\nmine.close()\ntime.monotonic() - began"
    assert float(box.value(code, timeout_ms=60_000 * SLOWER)) > SOON
    box.close()


def longest_wait(box, seconds: float) -> float:
    """Of this session's calls, in that time."""
    longest, end = 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        assert box.value("1 + 1") == "2"
        longest = max(longest, time.monotonic() - began)
    return longest


def test_a_guest_that_hands_over_a_socket_stops_nobody(plain):
    box, other = plain.box(), plain.box()
    other.python("1")
    call = box.send_python(STUBBORN + HAND_OVER)
    slowest = longest_wait(other, 2 * SLOWER)
    closing = plain.send("close", session=box.name)
    slowest = max(slowest, longest_wait(other, 2 * SLOWER))
    said = ""
    with contextlib.suppress(Refused):  # it was closed
        said = call.wait().stdout
    with contextlib.suppress(Refused):
        closing.wait()
    other.close()
    assert slowest < SOON, f"another session waited {slowest:.1f} s; the guest: {said}"


def is_socket(text: str) -> bool:
    return text.startswith("socket:")


LIST = """
import os
found = []
for name in os.listdir("/proc/self/fd"):
    try: found.append(os.readlink("/proc/self/fd/" + name))
    except OSError: pass
found
"""


def test_no_process_of_a_session_starts_with_a_socket(engine):
    box = engine.box()
    assert not any(map(is_socket, eval(box.value(LIST))))
    shell = box.shell("for fd in /proc/$$/fd/*; do readlink $fd; done").stdout.split()
    assert len(shell) >= 4 and not any(map(is_socket, shell)), shell
    assert any(map(is_socket, eval(box.value("import socket\npair = socket.socketpair()\n" + LIST))))  # the control
    for terminal in ({}, {"terminal": True}):
        program = engine.call("spawn", session=box.name, arguments=["sh", "-c", "ls -l /proc/$$/fd"], **terminal).program
        listed = engine.call("program", program=program, wait_ms=20_000 * SLOWER).stdout
        assert "/proc" not in listed and "->" in listed and "socket:" not in listed, listed
    box.close()


def test_no_warm_worker_starts_with_a_socket(scene):
    with Engine(scene, settings={"python": "/usr/bin/python3", "preload": ["json"]}) as engine:
        wait_until_warm(engine)
        box = engine.box()
        answer = box.python(LIST)
        assert answer.started == "warm" and not any(map(is_socket, eval(answer.result))), answer


def test_what_a_guest_writes_to_a_shell_as_large_as_can_be_arrives(engine):
    """Its commands come in packets, each with room for one line of 128 bytes."""
    box = engine.box()
    text = "".join(f"{n} 'quoted' $HOME \\\\ {'x' * (n % 300)}\n" for n in range(2000))
    answer = box.shell(f"cat <<'END'\n{text}END")
    assert answer.stdout == text, answer.notes
    box.close()


# ---------------------------------------------------------------- how many


def test_a_guest_has_the_callers_limit_and_not_the_engines(scene):
    """The engine raises its own. A guest whose policy says nothing starts with what the caller had."""
    with Engine(scene, "open", under=("prlimit", "--nofile=700:5000")) as engine:
        box = engine.box()
        assert box.value("import resource\nresource.getrlimit(resource.RLIMIT_NOFILE)") == "(700, 5000)"
        assert box.shell("ulimit -Sn; ulimit -Hn").stdout == "700\n5000\n"
        lines = pathlib.Path(f"/proc/{engine.pid}/limits").read_text().splitlines()
        own = next(line for line in lines if line.startswith("Max open files"))
        assert own.split()[3:5] == ["5000", "5000"]  # the control


def test_sessions_need_few_and_who_has_none_left_is_told_what_to_do(scene):
    with Engine(scene, settings={"max_sessions": 100}, under=("prlimit", "--nofile=300:300")) as engine:
        count = 0
        with pytest.raises(Refused) as refused:
            for count in range(100):
                assert engine.box().value("1 + 1") == "2"
        assert "Too many open files" in str(refused.value) and "ulimit -n" in str(refused.value)
        assert count >= 14
