"""Requests as the RFCs have them: forms of a target, folded lines, HEAD, pages of other origins, a full disk."""

from __future__ import annotations

import os
import subprocess

import pytest
import serving
from test_http_skills import MAIN, upload, zipped

PAGE = "https://app.example"


def head(server, line: str, *headers: str, host: str | None = "localhost") -> tuple[bytes, bytes]:
    """Head and body of the answer, as they come over the wire."""
    lines = [line, *([f"Host: {host}"] if host else []), *headers, "Connection: close", "", ""]
    answer, _, body = server.raw("\r\n".join(lines).encode()).partition(b"\r\n\r\n")
    return answer, body


def status(answer: bytes) -> int:
    return int(answer.split()[1])


@pytest.mark.parametrize("target, host, expected", [
    ("http://localhost/v1/health", "localhost", 200),
    ("HTTP://LOCALHOST:8077/v1/health", "localhost", 200),
    ("http://localhost", "localhost", 200),
    ("http://localhost?x=1", "localhost", 200),
    ("http://localhost/v1/none", "localhost", 404),
    ("http://localhost/v1/health", "evil.example", 200),  # the target's counts
    ("http://evil.example/v1/health", "localhost", 403),
    ("http://localhost@evil.example/v1/health", "localhost", 403),
    ("http:///v1/health", "localhost", 403),
    ("http://localhost/v1/health", None, 400),
    ("ftp://localhost/v1/health", "localhost", 404),
])  # fmt: skip
def test_a_target_may_say_the_host(server, target, host, expected):
    answer, _ = head(server, f"GET {target} HTTP/1.1", host=host)
    assert status(answer) == expected, answer
    twice, _ = head(server, f"GET {target} HTTP/1.1", "Host: localhost")
    assert status(twice) in (400, 404 if target.startswith("ftp") else 400), "two of them"


@pytest.mark.parametrize("fold", [" ", "\t"])
@pytest.mark.parametrize("parts", ["whole", "in pieces"])
def test_a_folded_line_is_refused(server, fold, parts):
    lines = ["GET /v1/health HTTP/1.1", "Host: localhost", "X-Long: one", f"{fold}two", "Connection: close", "", ""]
    request = "\r\n".join(lines).encode()
    with server.connect() as connection:
        for piece in [request] if parts == "whole" else [request[at : at + 1] for at in range(len(request))]:
            connection.sendall(piece)
        assert status(serving.read_all(connection)) == 400
    plain = request.replace(f"\r\n{fold}two".encode(), b" two")
    assert status(server.raw(plain)) == 200, "the control"
    # In a body it is no line of the head.
    body = b"a:\r\n b"
    sent = (
        f"PUT /v1/sessions/none/files/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        f"Authorization: Bearer {server.client('ann').token}\r\nConnection: close\r\n\r\n"
    ).encode() + body
    assert status(server.raw(sent)) == 404


@pytest.mark.parametrize("path, expected", [("/v1/health", 405), ("/none", 404), ("/v1/sessions", 405)])
def test_an_answer_to_head_has_no_body(server, path, expected):
    answer, body = head(server, f"HEAD {path} HTTP/1.1")
    assert status(answer) in (expected, 200, 401) and body == b"", (answer, body)
    refused, body = head(server, f"HEAD {path} HTTP/1.1", host="evil.example")
    assert status(refused) == 403 and body == b"" and b"Content-Length: " in refused, (refused, body)
    assert head(server, f"GET {path} HTTP/1.1", host="evil.example")[1], "the control"


# -------------------------------------------------- pages of other origins


@pytest.fixture
def paged(start):
    return start(config=f'origins = ["{PAGE}"]')


def headers_of(answer: bytes) -> dict:
    return {name.lower(): value for name, value in (line.split(": ", 1) for line in answer.decode().split("\r\n")[1:])}


def ask_before(server, path: str, origin: str, method: str = "POST"):
    return head(
        server, f"OPTIONS {path} HTTP/1.1", f"Origin: {origin}", f"Access-Control-Request-Method: {method}",
        "Access-Control-Request-Headers: authorization,content-type",
    )  # fmt: skip


def test_a_browser_may_send_what_a_page_of_a_known_origin_asks(paged):
    """As the fetch standard has it: the question before, then the request, whose answer the page may read."""
    answer, body = ask_before(paged, "/v1/execute/python", PAGE)
    told = headers_of(answer)
    assert status(answer) == 204 and body == b"", answer
    assert told["access-control-allow-origin"] == PAGE and "POST" in told["access-control-allow-methods"], told
    allowed = {each.strip().lower() for each in told["access-control-allow-headers"].split(",")}
    assert {"authorization", "content-type"} <= allowed and "Origin" in told["vary"], told
    assert "access-control-allow-credentials" not in told
    ann = paged.client("ann")
    made = ann("POST", "/v1/execute/python", b'{"code": "6 * 7"}', {"Origin": PAGE, "Content-Type": "application/json"})
    assert made.json["result"] == "42" and made.headers["Access-Control-Allow-Origin"] == PAGE, made
    assert "Origin" in made.headers["Vary"]
    for refused in (ann("GET", "/v1/sessions/none", headers={"Origin": PAGE}),
                    paged.client(None)("GET", "/v1/sessions", headers={"Origin": PAGE})):  # fmt: skip
        assert refused.status in (401, 404) and refused.headers["Access-Control-Allow-Origin"] == PAGE, refused
    with ann.stream("GET", "/v1/events", {"Origin": PAGE}) as events:
        assert events.answer.headers["Access-Control-Allow-Origin"] == PAGE


@pytest.mark.parametrize("origin", ["https://evil.example", "https://app.example.evil", "null", f"{PAGE}:1", ""])
def test_a_browser_may_not_for_any_other(paged, origin):
    answer, _ = ask_before(paged, "/v1/execute/python", origin)
    assert status(answer) == 403 and b"access-control-" not in answer.lower(), answer
    ann = paged.client("ann")
    assert ann("GET", "/v1/sessions", headers={"Origin": origin}).status == 403


def test_where_no_origin_is_known_nothing_is_said_of_them(server):
    answer, _ = ask_before(server, "/v1/execute/python", PAGE)
    assert status(answer) == 403 and b"access-control-" not in answer.lower(), answer
    plain, _ = head(server, "OPTIONS /v1/execute/python HTTP/1.1")
    assert status(plain) == 405, plain


# ------------------------------------------------------------- a full disk


@pytest.fixture
def small_disk(scene):
    if os.geteuid() != 0:
        pytest.skip("needs root to make a small disk")
    small = scene.home / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)], check=True)
    scene.identity.own(small)
    yield small
    subprocess.run(["umount", "-l", str(small)], check=True)


def test_a_full_disk_is_no_fault_of_who_asks(start, small_disk):
    ann = start(session=f'workdir = "{small_disk}"').client("ann")
    session = ann.session()
    full = ann("PUT", f"/v1/sessions/{session}/files/large", b"x" * (2 << 20))
    assert full.status == 507 and full.error["type"] == "disk_full", full
    assert ann("PUT", f"/v1/sessions/{session}/files/small", b"x").status == 201, "the control"


def test_a_skill_that_the_disk_has_no_room_for_is_no_fault_of_who_asks(start, small_disk):
    ann = start(skills=str(small_disk)).client("ann")
    files = {"SKILL.md": MAIN, "large": os.urandom(2 << 20)}
    assert upload(ann, zipped(files)).status == 507
    assert upload(ann, zipped({"SKILL.md": MAIN})).status == 201, "the control"
