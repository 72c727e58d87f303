"""Who is let in, what is refused, and how that is said."""

import http.client
import json
import os
import socket
import stat

import pytest
import serving


def test_health_and_readiness_need_no_token(server):
    nobody = server.client(None)
    assert nobody.get("/v1/health").json == {"status": "ok"}
    assert nobody.get("/v1/ready").json == {"status": "ready"}


def test_everything_else_needs_a_token(server):
    nobody = server.client(None)
    for path in ("/v1/sessions", "/v1/capabilities", "/metrics", "/v1/events"):
        refused = nobody.get(path)
        assert refused.status == 401 and refused.error["type"] == "unauthorized"
        assert refused.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("header", ["Bearer wrong-token-0123456789", "Basic YWJj", "Bearer", "Bearer "])
def test_a_wrong_token_is_refused(server, header):
    assert server.client(None)("GET", "/v1/sessions", headers={"Authorization": header}).status == 401


def test_scopes_bound_what_a_token_may_do(server):
    eye = server.client("eye")
    assert eye.get("/v1/sessions").status == 200
    refused = eye.post("/v1/sessions")
    assert refused.status == 403 and refused.error["type"] == "forbidden"
    assert server.client("tool").get("/v1/sessions").status == 403


def test_an_unknown_path_and_a_wrong_method_are_said(server, ann):
    assert ann.get("/v1/nothing").error["type"] == "not_found"
    assert ann.get("/v1/sessions/").status == 404
    refused = ann("PUT", "/v1/sessions")
    assert refused.status == 405 and refused.headers["Allow"] == "GET, POST"


def test_head_is_get_without_a_body(ann):
    answer = ann("HEAD", "/v1/health")
    assert answer.status == 200 and answer.body == b"" and int(answer.headers["Content-Length"]) > 0


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil:80", "localhost:x", ""])
def test_another_host_name_is_refused(server, host):
    """A name of an attacker's that leads here: DNS rebinding."""
    answer = server.raw(f"GET /v1/health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 403"), answer


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]:80"])
def test_loopback_host_names_are_known(server, host):
    answer = server.raw(f"GET /v1/health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 200"), answer


@pytest.mark.parametrize("lines", ["", "Host: localhost\r\nHost: evil.example\r\n"])
def test_no_host_or_two_are_refused(server, lines):
    answer = server.raw(f"GET /v1/health HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 400"), answer


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://localhost:1"])
def test_a_page_of_another_origin_cannot_call(server, ann, origin):
    refused = ann("POST", "/v1/sessions", headers={"Origin": origin})
    assert refused.status == 403 and refused.error["type"] == "forbidden"
    assert "Access-Control-Allow-Origin" not in refused.headers


def test_our_own_origin_and_those_allowed_can_call(start):
    server = start(config='origins = ["https://agents.example"]')
    ann = server.client("ann")
    for origin in (f"http://127.0.0.1:{server.port}", "https://agents.example"):
        assert ann("GET", "/v1/sessions", headers={"Origin": origin}).status == 200


def unix_get(path: str, target: str, **headers) -> tuple[int, bytes]:
    connection = serving.UnixConnection(path)
    connection.request("GET", target, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_the_owner_proves_himself_on_the_socket_with_a_key(server):
    assert stat.S_IMODE(os.stat(server.socket_path).st_mode) == 0o600
    key = server.owner_key()
    status, body = unix_get(server.socket_path, "/v1/sessions", Authorization=f"Bearer {key}")
    assert status == 200 and json.loads(body) == {"sessions": []}
    for wrong in ("", "Bearer ", f"Bearer {key[:-1]}", f"Bearer {key}x", f"Basic {key}"):
        assert unix_get(server.socket_path, "/v1/sessions", **({"Authorization": wrong} if wrong else {}))[0] == 401
    assert unix_get(server.socket_path, f"/v1/sessions?token={key}")[0] == 401


def test_the_key_opens_nothing_but_the_local_socket(server, start):
    other = start()
    asked = serving.Client(server, server.owner_key()).get("/v1/sessions")
    assert asked.status == 401, asked
    status, _ = unix_get(other.socket_path, "/v1/sessions", Authorization=f"Bearer {server.owner_key()}")
    assert status == 401, "each start has its own"


def test_a_page_cannot_use_the_socket_through_a_proxy(server):
    key = f"Bearer {server.owner_key()}"
    assert unix_get(server.socket_path, "/v1/sessions", Origin="http://localhost", Authorization=key)[0] == 403


@pytest.mark.parametrize("body", [b"{", b"[]", b"1", b'{"a":' * 100, b"\xff", b'{"id": 1}', b'{"nothing": 1}'])
def test_a_bad_body_is_a_bad_request(ann, body):
    refused = ann("POST", "/v1/sessions", body, {"Content-Type": "application/json"})
    assert refused.status == 400 and refused.error["type"] == "bad_request"


def test_a_body_that_is_no_json_by_its_type_is_refused(ann):
    refused = ann("POST", "/v1/sessions", b"{}", {"Content-Type": "text/plain"})
    assert refused.status == 415 and refused.error["type"] == "unsupported_media_type"


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(server):
    head = (
        f"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {serving.TOKENS['ann'][1]}\r\n"
        f"Content-Type: application/json\r\n"
    )
    answer = server.raw(f"{head}Content-Length: {1 << 40}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 413"), answer
    chunked = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode()
    answer = server.raw(chunked + b"1000000\r\n" + b"x" * 0x1000000 + b"\r\n1000000\r\n")
    assert answer.startswith(b"HTTP/1.1 413"), answer


def test_a_body_where_none_is_taken_is_refused(ann):
    assert ann("DELETE", "/v1/sessions/x", b"hello" * 9).status == 413
    refused = ann("DELETE", "/v1/sessions/x", b"hello")
    assert refused.status == 400 and refused.error["message"] == "this request takes no body"
    session = ann.session()
    for body in (b"", b"{}", b" { }\n"):  # as many clients send it
        assert ann("POST", f"/v1/sessions/{session}/interrupt", body).status == 200


def test_a_body_of_millions_of_values_is_refused_before_it_is_parsed(server, ann):
    session = ann.session()
    many = b'{"commands": [' + b'"",' * 5_000_000 + b'""]}'
    for path in (f"/v1/sessions/{session}/shell", f"/v1/sessions/{session}/tools/shell"):
        refused = ann("POST", path, many, {"Content-Type": "application/json"})
        assert refused.status == 400 and refused.error["message"] == "the body has too many values"


@pytest.mark.parametrize("codings", [["gzip", "chunked"], ["chunked", "chunked"], ["x", "x"], ["gzip"]])
def test_a_body_whose_end_others_could_see_elsewhere_is_refused(server, ann, codings):
    head = f"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ann.token}\r\n"
    head += "Content-Type: application/json\r\nConnection: close\r\n"
    body = b"2\r\n{}\r\n0\r\n\r\n"
    lines = "".join(f"Transfer-Encoding: {coding}\r\n" for coding in codings)
    assert server.raw(f"{head}{lines}\r\n".encode() + body).startswith(b"HTTP/1.1 400")
    control = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + body
    assert server.raw(control).startswith(b"HTTP/1.1 201")


def test_too_many_headers_are_refused(server):
    flood = b"".join(b"X-%d: %s\r\n" % (i, b"y" * 100) for i in range(1000))
    answer = server.raw(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n" + flood + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 431"), answer[:200]
    answer = server.raw(b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 431"), answer[:200]


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
        b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    ],
)
def test_what_is_no_request_is_answered_with_400(server, request_bytes):
    answer = server.raw(request_bytes + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400"), answer


def test_a_connection_serves_many_requests(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=serving.PATIENCE)
    sockets = set()
    for _ in range(20):
        connection.request("GET", "/v1/health")
        assert connection.getresponse().read()
        sockets.add(connection.sock)
    assert len(sockets) == 1
    with server.connect() as pipelined:
        one = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n"
        pipelined.sendall((one + b"\r\n") * 9 + one + b"Connection: close\r\n\r\n")
        assert serving.read_all(pipelined).count(b"HTTP/1.1 200") == 10


def test_continue_is_said_when_asked_for(server):
    body = b"{}"
    with server.connect() as connection:
        connection.sendall(
            b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
            + serving.TOKENS["ann"][1].encode()
            + b"\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n"
            b"Connection: close\r\n\r\n"
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        connection.sendall(body)
        assert serving.read_all(connection).startswith(b"HTTP/1.1 201")


def test_every_answer_forbids_guessing_its_type(ann):
    for path in ("/v1/health", "/openapi.json", "/", "/v1/nothing"):
        assert ann.get(path).headers["X-Content-Type-Options"] == "nosniff"


def test_the_other_address_is_not_listened_on(server):
    with socket.socket() as other:
        other.settimeout(1)
        assert other.connect_ex(("127.0.0.2", server.port)) != 0
