"""How the server begins and ends, and clients that are slow, silent or many."""

import os
import pathlib
import resource
import signal
import socket
import stat
import threading
import time

import pytest
import serving

ASK = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n"


def alive(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def busy(client, session: str, seconds: float = 60):
    stream = client.stream(
        "POST", f"/v1/sessions/{session}/python",
        code=f"print('on', flush=True)\nimport time\ntime.sleep({seconds})\n'slept'",
    )  # fmt: skip
    stream.until("output")
    return stream


# ------------------------------------------------------------- beginning


def test_a_token_is_made_at_the_first_start(start):
    server = start(tokens={})
    name, scopes, token = server.token_file.read_text().split()
    assert stat.S_IMODE(server.token_file.stat().st_mode) == 0o600 and len(token) > 40
    assert serving.Client(server, token).get("/v1/sessions").status == 200


def test_a_token_file_that_others_can_read_is_refused(start, server):
    server.token_file.chmod(0o644)
    with pytest.raises(RuntimeError, match="others can read the tokens"):
        start(f"--token-file={server.token_file}")


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0"])
def test_an_address_that_others_reach_needs_a_word(start, address):
    with pytest.raises(RuntimeError, match="others can reach"):
        start(f"--listen={address}")


def test_with_the_word_it_listens_there(start):
    server = start("--listen=0.0.0.0:0", "--allow-remote")
    assert "listening on 0.0.0.0:" in server.errors()


def test_it_listens_wherever_it_was_told_to(start, scene):
    path = f"{scene.home}/other.sock"
    server = start("--listen=127.0.0.1:0", "--listen=127.0.0.2:0", f"--listen=unix:{path}")
    assert server.client(None).get("/v1/health").status == 200
    connection = serving.UnixConnection(path)
    connection.request("GET", "/v1/health")
    assert connection.getresponse().status == 200
    assert "listening on 127.0.0.2:" in server.errors()


def test_a_socket_left_behind_is_replaced_and_one_in_use_is_not(start, server):
    assert "another server listens" in failure_of(start, server.socket_path)
    server.kill()
    assert os.path.exists(server.socket_path)
    taken = start(f"--listen=unix:{server.socket_path}")
    assert "listening on unix:" in taken.errors()


def failure_of(start, path: str) -> str:
    with pytest.raises(RuntimeError) as failure:
        start(f"--listen=unix:{path}")
    return str(failure.value)


def test_sandbox_off_is_refused(start):
    with pytest.raises(RuntimeError, match="without a sandbox"):
        start("--sandbox=off")


# ---------------------------------------------------------------- ending


def test_sigterm_lets_calls_come_to_their_end(server, ann):
    session = ann.session()
    idle = server.connect()
    with busy(ann, session, 2) as events:
        server.signal(signal.SIGTERM)
        assert serving.wait_until(lambda: refuses_connections(server))
        result = events.until("result")
    assert result["result"] == "'slept'"
    assert server.wait() == 0
    assert idle.recv(1) == b""
    assert not os.path.exists(server.socket_path)


def refuses_connections(server) -> bool:
    try:
        server.connect().close()
    except OSError:
        return True
    return False


def test_a_second_sigterm_ends_it_at_once(server, ann):
    session = ann.session()
    with busy(ann, session):
        guests = server.guests()
        assert guests
        server.signal(signal.SIGTERM)
        assert serving.wait_until(lambda: refuses_connections(server))
        began = time.monotonic()
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert time.monotonic() - began < 5
    assert serving.wait_until(lambda: not any(map(alive, guests)))
    assert not os.path.exists(server.socket_path)


def test_what_does_not_end_in_time_is_ended(start):
    server = start(config='drain_timeout = "500ms"')
    ann = server.client("ann")
    with busy(ann, ann.session()):
        server.signal(signal.SIGTERM)
        began = time.monotonic()
        assert server.wait() == 0
        assert time.monotonic() - began < 8


def test_calls_that_wait_for_others_are_ended_with_them(start):
    """Each gets its turn because the one before it was ended, and finds nothing to run in."""
    server = start(config='drain_timeout = "500ms"')
    ann = server.client("ann")
    session = ann.session()
    answers: list[serving.Answer] = []
    path = f"/v1/sessions/{session}/python"
    threads = [threading.Thread(target=lambda: answers.append(ann.post(path, code="1"))) for _ in range(4)]
    with busy(ann, session):
        for each in threads:
            each.start()
        assert serving.wait_until(lambda: server.gauge("belljar_requests_running") >= 5)
        server.signal(signal.SIGTERM)
        for each in threads:
            each.join()
        assert server.wait() == 0, server.errors()
    assert len(answers) == 4 and all(each.status == 503 for each in answers), answers


def test_events_do_not_hold_the_end_up(server, ann):
    with ann.stream("GET", "/v1/events") as events:
        events.until("hello")
        server.signal(signal.SIGTERM)
        assert server.wait() == 0
        assert list(events) == []


def test_sigkill_leaves_no_guest(server, ann):
    sessions = [ann.session() for _ in range(3)]
    streams = [busy(ann, each) for each in sessions]
    guests = server.guests()
    assert len(guests) >= 3
    server.kill()
    assert serving.wait_until(lambda: not any(map(alive, guests)), 5)
    for stream in streams:
        stream.connection.close()


def test_an_ended_server_leaves_no_folder(server, ann, scene):
    session = ann.session()
    folder = ann.python(session, "import os\nos.getcwd()")["working_directory"]
    assert folder.startswith("/") and os.path.isdir(folder)
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert not os.path.exists(folder)


def test_sighup_reads_the_tokens_again(server, ann):
    session = ann.session()
    tokens = {name: each for name, each in serving.TOKENS.items() if name != "bob"}
    tokens["new"] = ("run", "new-token-0123456789abcdef")
    server.write_tokens(tokens)
    server.signal(signal.SIGHUP)
    assert serving.wait_until(lambda: server.client("bob").get("/v1/sessions").status == 401)
    assert serving.Client(server, tokens["new"][1]).get("/v1/sessions").status == 200
    assert ann.python(session, "1")["result"] == "1", "sessions live on"


def test_sighup_reads_limits_and_permissions_again(server, ann):
    before = server.config_file.read_text()
    session = ann.session()
    assert ann.python(session, "1")["result"] == "1"  # the control: it may

    def reload(config: str) -> None:
        told = server.errors().count("read again")
        server.config_file.write_text(config)
        server.signal(signal.SIGHUP)
        assert serving.wait_until(lambda: server.errors().count("read again") > told), server.errors()

    reload(before + 'max_sessions_per_token = 1\n[permissions]\npython = "deny"\n')
    assert ann.post(f"/v1/sessions/{session}/python", code="1").status == 403
    assert ann.post("/v1/sessions").status == 429
    assert ann.get(f"/v1/sessions/{session}").status == 200  # what there was goes on
    reload(before)
    assert ann.python(session, "1")["result"] == "1" and ann.post("/v1/sessions").status == 201


def test_a_broken_configuration_changes_nothing(server, ann):
    server.config_file.write_text(server.config_file.read_text() + "nonsense = 1\n")
    server.signal(signal.SIGHUP)
    assert serving.wait_until(lambda: "nothing is changed" in server.errors())
    assert "nonsense" in server.errors() and ann.post("/v1/sessions").status == 201


def test_a_broken_token_file_changes_nothing(server, ann):
    server.token_file.write_text("ann nonsense\n")
    server.signal(signal.SIGHUP)
    assert serving.wait_until(lambda: "nothing is changed" in server.errors())
    assert ann.get("/v1/sessions").status == 200


def test_a_token_file_that_is_away_changes_nothing(server, ann):
    """Whoever writes it anew may have removed it first."""
    server.token_file.unlink()
    server.signal(signal.SIGHUP)
    assert serving.wait_until(lambda: "nothing is changed" in server.errors()), server.errors()
    assert str(server.token_file) in server.errors().split("nothing is changed", 1)[1]
    assert ann.get("/v1/sessions").status == 200 and not server.token_file.exists()
    server.write_tokens({"new": ("run", "new-token-0123456789abcdef")})  # the control
    server.signal(signal.SIGHUP)
    assert serving.wait_until(lambda: ann.get("/v1/sessions").status == 401)


def test_systemd_is_told(start, scene):
    path = str(scene.home) + "/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(path)
        os.chmod(path, 0o777)
        told.settimeout(serving.PATIENCE)
        server = start(environment={"NOTIFY_SOCKET": path})
        assert told.recv(100) == b"READY=1"
        server.signal(signal.SIGTERM)
        assert told.recv(100) == b"STOPPING=1"


# ------------------------------------------------- slow, silent and many


def test_a_slow_head_is_given_up(start):
    server = start(config='header_timeout = "500ms"')
    with server.connect() as slow:
        slow.sendall(b"GET /v1/he")
        began = time.monotonic()
        answer = serving.read_all(slow)
        assert answer.startswith(b"HTTP/1.1 408") and time.monotonic() - began < 5


def test_a_dripping_head_is_given_up(start):
    server = start(config='header_timeout = "1s"')
    with server.connect() as slow:
        began = time.monotonic()
        with pytest.raises(OSError):
            for i in range(200):
                slow.sendall(b"GET / HTTP/1.1\r\nX: "[i : i + 1] or b"x")
                time.sleep(0.05)
        assert time.monotonic() - began < 8


def test_a_slow_body_is_given_up(start):
    server = start(config='body_timeout = "500ms"')
    with server.connect() as slow:
        slow.sendall(
            b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
            + serving.TOKENS["ann"][1].encode()
            + b"\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        )
        assert serving.read_all(slow).startswith(b"HTTP/1.1 408")


def test_an_idle_connection_is_closed(start):
    server = start(config='idle_timeout = "500ms"')
    with server.connect() as idle:
        assert idle.recv(1) == b""


def test_a_reader_that_does_not_read_is_given_up(start):
    server = start(config='write_timeout = "500ms"')
    ann = server.client("ann")
    session = ann.session()
    with server.connect() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.sendall(f"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ann.token}\r\n\r\n".encode())
        assert serving.wait_until(lambda: "belljar_event_listeners 1" in ann.get("/metrics").body.decode())
        ann.python(session, "for i in range(1000): print('x' * 20000)")
        assert serving.wait_until(lambda: gone(ann, session))


def gone(ann, session) -> bool:
    ann.python(session, "print(1)")
    return "belljar_event_listeners 0" in ann.get("/metrics").body.decode()


@pytest.mark.parametrize("more", [b"", b"\r\n", b"GET /v1/health HTTP/1.1\r\n"], ids=["nothing", "a line", "a request"])
def test_who_hangs_up_is_noticed_whatever_came_before(server, ann, more):
    head = f"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ann.token}\r\n\r\n".encode()
    for _ in range(3):
        with server.connect() as connection:
            connection.sendall(head + more)
            while b"hello" not in connection.recv(65536):
                pass
            assert server.gauge("belljar_connections") == 2, "its own, and who asks"
        assert serving.wait_until(lambda: server.gauge("belljar_connections") == 1, 5 * serving.jars.SLOWER)


def test_requests_that_came_while_another_was_answered_are_answered(server, ann):
    session = ann.session()
    body = b'{"code": "import time; time.sleep(0.3)"}'
    slow = f"POST /v1/sessions/{session}/python HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    slow += f"Authorization: Bearer {ann.token}\r\nContent-Length: {len(body)}\r\n\r\n"
    many = 2000  # more bytes than are taken in beforehand
    with server.connect() as connection:
        connection.sendall(slow.encode() + body)
        sender = threading.Thread(target=connection.sendall, args=((ASK + b"\r\n") * many,))
        sender.start()
        answers = b""
        while answers.count(b"HTTP/1.1 200") < many + 1:
            part = connection.recv(65536)
            assert part, answers[-500:]
            answers += part
        sender.join()


def test_the_thousandth_request_costs_no_more_than_the_first(server):
    with server.connect() as connection:
        costs = []
        for _ in range(4):
            before = serving.cpu_seconds(server.process.pid)
            for _ in range(1000):
                connection.sendall(ASK + b"\r\n")
                assert connection.recv(65536).startswith(b"HTTP/1.1 200")
            costs.append(serving.cpu_seconds(server.process.pid) - before)
    assert costs[3] < 2 * costs[0] + 0.3, costs


def test_the_longest_idle_connection_makes_room(start):
    server = start(config="max_connections = 10")
    first = server.connect()
    others = [server.connect() for _ in range(9)]
    assert server.client(None).get("/v1/health").status == 200
    assert first.recv(1) == b""
    others[-1].sendall(ASK + b"Connection: close\r\n\r\n")
    assert serving.read_all(others[-1]).startswith(b"HTTP/1.1 200")


def test_when_all_connections_are_busy_the_next_is_refused(start):
    server = start(config="max_connections = 3")
    ann = server.client("ann")
    sessions = [ann.session() for _ in range(3)]
    streams = [busy(ann, each, 20) for each in sessions]
    with server.connect() as late:
        assert serving.read_all(late).startswith(b"HTTP/1.1 503")
    for stream in streams:
        stream.connection.close()


def test_half_open_connections_do_no_harm(server, ann):
    """The client's side is closed, or reset, at any moment."""
    for cut in (b"", b"G", ASK, ASK + b"\r\n", b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"):
        for reset in (False, True):
            connection = server.connect()
            connection.sendall(cut)
            if reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            else:
                connection.shutdown(socket.SHUT_WR)
                serving.read_all(connection)
            connection.close()
    assert ann.get("/v1/health").status == 200
    assert serving.wait_until(lambda: "belljar_connections 1\n" in ann.get("/metrics").body.decode())


def test_ten_thousand_idle_connections(start):
    server = start()
    ann = server.client("ann")
    many = 10_000 // serving.jars.SLOWER
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < many + 500:
        pytest.skip(f"this process may have {hard} descriptors only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    connections = []
    try:
        connections = [server.connect() for _ in range(many)]
        assert serving.wait_until(lambda: open_connections(ann) > many)
        times = []
        for _ in range(50):
            began = time.monotonic()
            assert ann.get("/v1/health").status == 200
            times.append(time.monotonic() - began)
        assert sorted(times)[25] < 0.1
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
        resident = int(status.split("VmRSS:")[1].split()[0])
        assert resident < 400_000, "kB"
    finally:
        for connection in connections:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert serving.wait_until(lambda: open_connections(ann) == 1)


def open_connections(client) -> int:
    text = client.get("/metrics").body.decode()
    return int(text.split("\nbelljar_connections ")[1].split()[0])


def test_many_clients_at_once_are_all_answered(server, ann):
    answers = []

    def ask():
        for _ in range(20):
            answers.append(ann.get("/v1/sessions").status)

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers.count(200) == 320
