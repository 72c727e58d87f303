"""Connections are descriptors, and so is most of what a session is made of. Who has no token may hold only those that
no session needs, and little memory with them."""

from __future__ import annotations

import contextlib
import pathlib

import pytest

import serving

FEW = ["prlimit", "--nofile=640:640"]
VERY_FEW = ["prlimit", "--nofile=120:120"]
HALF = b"GET /v1/health HTTP/1.1\r\n" + b"a:b\r\n" * 3000  # 15 KiB, and much more as a list of headers


@contextlib.contextmanager
def strangers(server, count: int, says: bytes):
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            with contextlib.suppress(OSError):  # refused at the door
                connection = stack.enter_context(server.connect())
                connection.sendall(says)
        yield


def resident_kb(server) -> int:
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


@pytest.mark.parametrize("says", [b"", b"G", HALF], ids=["idle", "one-byte", "half-a-head"])
def test_strangers_leave_descriptors_for_sessions(start, says):
    server = start(wrapper=FEW, session="max_sessions = 8")
    ann = server.client("ann")
    with strangers(server, 700, says):
        answer = ann.python(ann.session(), "1 + 1")
        assert answer["result"] == "2"
        assert ann.post("/v1/execute/shell", commands=["echo hello"]).json["stdout"] == "hello\n"
    assert "at most" in server.errors() and "ulimit -Hn" in server.errors()


def test_a_limit_that_is_large_enough_is_not_felt(start):
    """The soft one is raised, and what is left for connections is more than was asked for."""
    server = start(wrapper=["prlimit", "--nofile=256:4096"], config="max_connections = 400")
    assert "ulimit" not in server.errors()
    with strangers(server, 300, b""):
        assert serving.wait_until(lambda: server.gauge("belljar_connections") > 300)


def test_a_shortage_of_the_host_is_no_fault_of_the_request(start):
    """And where on the host it happened is not said."""
    server = start(wrapper=VERY_FEW, config="max_sessions_per_token = 40")
    ann = server.client("ann")
    refused = []
    for _ in range(12):
        answer = ann.post("/v1/sessions")
        if answer.status == 201:
            answer = ann.post(f"/v1/sessions/{answer.json['id']}/python", code="1")
        if answer.status != 200:
            refused.append(answer)
    assert refused and len(refused) < 12
    for answer in refused:
        assert answer.status == 503 and answer.error["type"] == "host_failed", answer
        assert "/" not in answer.error["message"] and "Too many open files" in answer.error["message"], answer


def test_half_a_head_takes_little_memory(start):
    server = start(config='header_timeout = "60s"')
    count = 300
    with strangers(server, 20, HALF):
        before = resident_kb(server)
        with strangers(server, count, HALF):
            assert serving.wait_until(lambda: server.gauge("belljar_connections") > count)
            each = (resident_kb(server) - before) / count
    assert each < 35, each


def test_what_is_no_head_is_answered_at_once(server):
    """As ever: who speaks TLS, or ends lines without CR, does not wait for the time to be over."""
    for request in (b"\x16\x03\x01\x02\x00\x01", b"GET /v1/health HTTP/1.1\nHost: localhost\n\n"):
        assert b" 400 " in server.raw(request).splitlines()[0]


def test_a_head_in_pieces_is_one(server):
    with server.connect() as connection:
        for byte in b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n":
            connection.sendall(bytes([byte]))
        assert b" 200 " in serving.read_all(connection).splitlines()[0]
