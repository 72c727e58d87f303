"""What a guest's network is like when rules name hosts: like a network, but for what is denied.

A guest is Python with nothing but its library; `GUEST` holds what several of them use.
"""

from __future__ import annotations

import json
import pathlib
import resource
import socket
import threading
import time

import jar as jars
import names
import pytest
from names import ALPHA, BETA, CLOSED, FOUR, HERE, UNREACHABLE
from services import BANNER, DIGEST, ECHO, HTTP, PATTERN, RESET, SOURCE
from wired import assert_explained, decisions, events

GUESTS = pathlib.Path(__file__).parent / "guests"
AT_ONCE = 0.5  # seconds that an answer may take which belljar gives by itself
QUICK = 2.0  # and one that a host gives

GUEST = f"""
import errno, hashlib, json, os, select, socket, sys, threading, time
ALPHA, ALPHA6, BETA, BETA6, FOUR = {ALPHA[0]!r}, {ALPHA[1]!r}, {BETA[0]!r}, {BETA[1]!r}, {FOUR!r}

def call(host, port, patience=20):
    return socket.create_connection((host, port), timeout=patience)

def everything(line):
    parts = []
    while part := line.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)

def outcome(deed, *arguments):
    "What became of it, and how long it took."
    begin = time.monotonic()
    try:
        deed(*arguments)
        said = "ok"
    except socket.gaierror as problem:
        said = "no such name"
    except TimeoutError as problem:
        said = "timeout"
    except OSError as problem:
        said = errno.errorcode.get(problem.errno, str(problem))
    return [said, round(time.monotonic() - begin, 3)]

def tell(**found):
    print(json.dumps(found), flush=True)
"""


def tried(wired, code: str, *rules: str, arguments=(), **how) -> dict:
    """Runs code in a jar with these rules; what it told."""
    run = wired.run(wired.python(GUEST + code, *arguments), *rules, **how)
    assert run.exit == 0, "failed"
    return json.loads(run.stdout.splitlines()[-1])


# ------------------------------------------------------------------------ connecting

RULES = pytest.mark.parametrize(
    ("host", "rule"),
    [("alpha.example", f"alpha.example:{ECHO}-{BANNER}"), (ALPHA[0], ALPHA[0]), (ALPHA[1], ALPHA[1])],
    ids=["name", "address", "address6"],
)  # fmt: skip


@RULES
def test_a_connection_echoes(wired, host, rule):
    code = "line = call(sys.argv[1], 7); line.sendall(b'hello\\n'); tell(got=line.recv(10).decode())"
    assert tried(wired, code, rule, arguments=[host]) == {"got": "hello\n"}


def test_a_connection_without_blocking_is_writable_and_without_error(wired):
    code = """
line = socket.socket()
line.setblocking(False)
began = time.monotonic()
code = line.connect_ex((ALPHA, 7))
took = time.monotonic() - began
_, writable, _ = select.select([], [line], [], 5)
error = line.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
line.setblocking(True)
line.sendall(b"hello")
tell(code=code, took=took, writable=bool(writable), error=error, got=line.recv(10).decode(),
     again=line.connect_ex((ALPHA, 7)))
"""
    found = tried(wired, code, ALPHA[0])
    assert found["code"] in (0, 115), "neither done nor EINPROGRESS"
    assert found["took"] < AT_ONCE
    assert (found["writable"], found["error"], found["got"]) == (True, 0, "hello")
    assert found["again"] in (0, 106), "the kernel says 0 once, then EISCONN"


@pytest.mark.parametrize("host", ["closed.example", CLOSED])
def test_a_refused_connection_is_refused(wired, host):
    code = "tell(was=outcome(call, sys.argv[1], 7))"
    rule = host if host == CLOSED else f"{host}:{ECHO}"
    was, seconds = tried(wired, code, rule, arguments=[host])["was"]
    assert was == "ECONNREFUSED" and seconds < QUICK


def test_a_refused_connection_without_blocking_ends_soon(wired):
    """The kernel may have connected it to the broker already: then it is reset."""
    code = """
line = socket.socket()
line.setblocking(False)
began = time.monotonic()
code = line.connect_ex((sys.argv[1], 7))
error = code
if code in (0, errno.EINPROGRESS):
    select.select([], [line], [], 5)
    error = line.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
if error == 0:
    line.setblocking(True)
    line.settimeout(5)
    try:
        error = 0 if line.recv(1) else -1
    except OSError as problem:
        error = problem.errno
tell(error=errno.errorcode.get(error, str(error)), took=time.monotonic() - began)
"""
    found = tried(wired, code, CLOSED, arguments=[CLOSED])
    assert found["error"] in ("ECONNREFUSED", "ECONNRESET") and found["took"] < QUICK


def test_an_unreachable_host_is_an_error(wired):
    code = "tell(was=outcome(call, sys.argv[1], 7))"
    was, seconds = tried(wired, code, UNREACHABLE, arguments=[UNREACHABLE])["was"]
    assert was in ("EHOSTUNREACH", "ENETUNREACH", "ECONNREFUSED") and seconds < 5


def test_a_host_that_never_answers_holds_up_nobody_else(wired):
    code = """
late = threading.Thread(target=lambda: results.append(outcome(call, sys.argv[1], 7, 1.5)))
results = []
late.start()
time.sleep(0.2)
other = outcome(lambda: call(ALPHA, 7).close())
late.join()
tell(late=results[0], other=other)
"""
    found = tried(wired, code, ALPHA[0], names.BLACK_HOLE, arguments=[names.BLACK_HOLE])
    assert found["other"][0] == "ok" and found["other"][1] < 1
    # A time limit of Python's makes it a call that does not block: see the refused one.
    assert found["late"][0] in ("timeout", "ok")


def test_a_slow_name_holds_up_nobody_else(wired):
    code = """
slow = threading.Thread(target=lambda: results.append(outcome(call, "slow.example", 80)))
results = []
slow.start()
time.sleep(0.2)
other = outcome(lambda: call("alpha.example", 80).close())
slow.join()
tell(slow=results[0], other=other)
"""
    found = tried(wired, code, "slow.example", "alpha.example")
    assert found["other"][0] == "ok" and found["other"][1] < names.SLOWLY - 0.2
    assert found["slow"][0] == "ok"


DENIED = ("EACCES", "ENETUNREACH", "EHOSTUNREACH", "ECONNREFUSED")


@pytest.mark.parametrize("host", [*BETA, "10.20.30.40", "169.254.169.254"])
def test_a_denied_address_is_denied_at_once(wired, host):
    run = wired.run(wired.python(GUEST + "tell(was=outcome(call, sys.argv[1], 7))", host), "alpha.example")
    was, seconds = json.loads(run.stdout)["was"]
    assert was in DENIED and seconds < AT_ONCE
    assert any(event["address"] == host and event["port"] == ECHO for event in events(run) if not event["allowed"])


def test_a_denied_name_is_unknown_at_once(wired):
    run = wired.run(wired.python(GUEST + "tell(was=outcome(call, 'beta.example', 80))"), "alpha.example")
    was, seconds = json.loads(run.stdout)["was"]
    assert was == "no such name" and seconds < AT_ONCE
    assert_explained(run, "beta.example")


# ---------------------------------------------------------------------- the stream


@RULES
def test_a_server_may_speak_first(wired, host, rule):
    code = f"""
line = call(sys.argv[1], {BANNER})
first = line.recv(100).decode()
line.sendall(b"HELO\\n")
tell(first=first, then=line.recv(10).decode())
"""
    found = tried(wired, code, rule, arguments=[host])
    assert found["first"].startswith("220 ") and found["then"] == "HELO\n"


def test_a_server_that_speaks_first_is_not_kept_waiting(wired):
    code = f"line = call(ALPHA, {BANNER}); began = time.monotonic(); line.recv(9); tell(took=time.monotonic() - began)"
    assert tried(wired, code, f"{ALPHA[0]}:{BANNER}")["took"] < AT_ONCE


def test_a_reset_comes_through(wired):
    code = f"line = call(ALPHA, {RESET}); line.sendall(b'x'); tell(was=outcome(line.recv, 1))"
    assert tried(wired, code, ALPHA[0])["was"][0] == "ECONNRESET"


def test_a_reset_of_the_guest_comes_through(wired):
    """The server's thread ends, rather than wait for a client that has gone."""
    code = """
import struct
line = call(ALPHA, 7)
line.sendall(b"hello"); line.recv(5)
line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
line.close()
tell(ok=outcome(lambda: call(ALPHA, 7).close()))
"""
    assert tried(wired, code, ALPHA[0])["ok"][0] == "ok"


def test_half_a_close_comes_through(wired):
    """The server answers once it has seen the end, and the guest still reads."""
    code = f"""
line = call(ALPHA, {DIGEST})
line.sendall(b"hello")
line.shutdown(socket.SHUT_WR)
tell(got=everything(line).decode())
"""
    expected = "5 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\n"
    assert tried(wired, code, ALPHA[0])["got"] == expected


@RULES
def test_a_large_transfer_out_is_exact(wired, host, rule):
    code = f"""
pattern = bytes(range(251)) * 4177
line, digest, count = call(sys.argv[1], {DIGEST}), hashlib.sha256(), 0
for _ in range(24):
    line.sendall(pattern); digest.update(pattern); count += len(pattern)
line.shutdown(socket.SHUT_WR)
tell(got=everything(line).decode(), expected=f"{{count}} {{digest.hexdigest()}}\\n")
"""
    found = tried(wired, code, rule, arguments=[host])
    assert found["got"] == found["expected"]


def test_what_a_guest_said_last_arrives(wired):
    """It does not wait for an answer: it ends, and belljar with it."""
    said = 3_000_000
    with wired.network.here():
        server = socket.create_server(("127.0.0.1", 0))
    port = server.getsockname()[1]
    heard = []

    def listen():
        caller, _ = server.accept()
        with caller:
            while data := caller.recv(1 << 16):
                heard.append(len(data))

    listener = threading.Thread(target=listen)
    listener.start()
    wired.run(wired.python(f"import socket; socket.create_connection(('127.0.0.1', {port})).sendall(b'x' * {said})"),
              f"localhost:{port}")  # fmt: skip
    listener.join(timeout=10)
    assert sum(heard) == said


@RULES
def test_a_large_transfer_in_is_exact(wired, host, rule):
    length = 24 * len(PATTERN) + 1234
    code = f"""
pattern = bytes(range(251)) * 4177
expected = hashlib.sha256(pattern * 24 + pattern[:1234]).hexdigest()
line = call(sys.argv[1], {SOURCE})
line.sendall(b"{length}\\n")
got = everything(line)
tell(length=len(got), same=hashlib.sha256(got).hexdigest() == expected)
"""
    assert tried(wired, code, rule, arguments=[host]) == {"length": length, "same": True}


def test_a_slow_reader_loses_nothing(wired):
    code = f"""
line = socket.socket()
line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
line.settimeout(20)
line.connect((ALPHA, {SOURCE}))
line.sendall(b"4000000\\n")
time.sleep(0.5)
tell(length=len(everything(line)))
"""
    assert tried(wired, code, ALPHA[0]) == {"length": 4000000}


def test_both_directions_at_once_are_exact(wired):
    code = """
line, sent, got = call(ALPHA, 7), hashlib.sha256(), hashlib.sha256()
def send():
    for i in range(200):
        part = os.urandom(40000)
        sent.update(part); line.sendall(part)
    line.shutdown(socket.SHUT_WR)
sender = threading.Thread(target=send); sender.start()
while part := line.recv(1 << 16): got.update(part)
sender.join()
tell(same=sent.digest() == got.digest())
"""
    assert tried(wired, code, ALPHA[0]) == {"same": True}


def test_a_large_upload_over_tls_to_a_name_is_exact(wired):
    wired.scene.file("upload", PATTERN * 8)
    command = ["/usr/bin/curl", "-sS", "--cacert", wired.authority, "--data-binary", "@upload", "-o", "back"]
    wired.ok([*command, "https://alpha.example/echo"], "alpha.example")
    assert (wired.scene.workdir / "back").read_bytes() == PATTERN * 8


def test_a_kept_connection_serves_many_requests_for_the_allowed_name(wired):
    urls = [f"http://alpha.example/?{number}" for number in range(5)]
    mark = wired.services.mark()
    out = wired.ok(["/usr/bin/curl", "-sS", *urls], "alpha.example")
    assert out.count("hello from alpha.example") == 5
    calls = [call for call in wired.services.since(mark, *ALPHA) if call.requests]
    assert len(calls) == 1 and len(calls[0].requests) == 5


# --------------------------------------------------------------------- the sockets


def test_the_peer_is_the_real_one(wired):
    code = """
four, six, named = call(ALPHA, 7), call(ALPHA6, 7), call("alpha.example", 80)
tell(four=four.getpeername()[:2], six=six.getpeername()[:2], named=named.getpeername()[:2])
"""
    found = tried(wired, code, *ALPHA, "alpha.example")
    assert found["four"] == [ALPHA[0], ECHO] and found["six"] == [ALPHA[1], ECHO]
    assert found["named"][0] in ALPHA and found["named"][1] == HTTP


def test_epoll_dup_and_fork_keep_working(wired):
    code = """
line = socket.socket()
poll = select.epoll()
poll.register(line, select.EPOLLIN | select.EPOLLOUT)
line.connect((ALPHA, 7))
copy = socket.socket(fileno=os.dup(line.fileno()))
ready = dict(poll.poll(2)).get(line.fileno(), 0)
number = line.fileno()
line.close()
copy.sendall(b"hello")
time.sleep(0.2)
after = dict(poll.poll(2)).get(number, 0)
child = os.fork()
if child == 0:
    copy.sendall(b" again")
    os._exit(0)
os.waitpid(child, 0)
got = b""
while len(got) < 11: got += copy.recv(20)
tell(writable=bool(ready & select.EPOLLOUT), readable=bool(after & select.EPOLLIN), got=got.decode())
"""
    assert tried(wired, code, ALPHA[0]) == {"writable": True, "readable": True, "got": "hello again"}


def test_options_and_a_time_out_of_the_guest_work(wired):
    code = """
line = call(ALPHA, 7)
line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
line.settimeout(0.2)
tell(was=outcome(line.recv, 1), family=line.family.name, own=line.getsockname()[1] > 0)
"""
    found = tried(wired, code, ALPHA[0])
    assert found["was"][0] == "timeout" and found["family"] == "AF_INET" and found["own"]


def test_two_hundred_connections_at_once(wired):
    code = """
lines = [call(ALPHA, 7) for _ in range(200)]
for number, line in enumerate(lines): line.sendall(b"%d" % number)
tell(right=sum(line.recv(10) == b"%d" % number for number, line in enumerate(lines)))
"""
    assert tried(wired, code, ALPHA[0]) == {"right": 200}


def test_many_connections_one_after_the_other(wired):
    """Nothing runs out: neither ports nor descriptors of the broker."""
    code = """
right = 0
for number in range(2000):
    with call(ALPHA, 7) as line:
        line.sendall(b"x")
        right += line.recv(1) == b"x"
tell(right=right)
"""
    assert tried(wired, code, ALPHA[0]) == {"right": 2000}


# --------------------------------------------------------------------------- UDP


@pytest.mark.parametrize(("host", "rule"), [
    (ALPHA[0], ALPHA[0]), (ALPHA[0], f"{ALPHA[0]}:{ECHO}"), (ALPHA[1], ALPHA[1]),
    ("alpha.example", f"alpha.example:{ECHO}"),
])  # fmt: skip
def test_datagrams_to_an_allowed_host_come_back(wired, host, rule):
    code = """
family, kind, _, _, to = socket.getaddrinfo(sys.argv[1], 7, type=socket.SOCK_DGRAM)[0]
loose, tied = socket.socket(family, kind), socket.socket(family, kind)
loose.settimeout(3); tied.settimeout(3)
loose.sendto(b"one", to)
data, peer = loose.recvfrom(100)
tied.connect(to)
tied.send(b"two")
second = tied.recv(100)
sizes = []
for size in (0, 1, 1400, 8000):
    tied.send(b"x" * size)
    sizes.append(len(tied.recv(9000)) - 5)
tell(data=data.decode(), peer=peer[:2] == to[:2], second=second.decode(), sizes=sizes)
"""
    expected = {"data": "echo one", "peer": True, "second": "echo two", "sizes": [0, 1, 1400, 8000]}
    assert tried(wired, code, rule, arguments=[host]) == expected


def test_one_socket_sends_to_several_hosts(wired):
    code = """
line = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
line.settimeout(3)
peers = set()
for host in (ALPHA, FOUR, ALPHA):
    line.sendto(b"x", (host, 7))
    peers.add(line.recvfrom(10)[1][0])
tell(peers=sorted(peers), denied=outcome(line.sendto, b"x", (BETA, 7)))
"""
    found = tried(wired, code, ALPHA[0], FOUR)
    assert found["peers"] == sorted([ALPHA[0], FOUR])
    assert found["denied"][0] in DENIED and found["denied"][1] < AT_ONCE


# --------------------------------------------------------------- its own loopback


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "localhost", "127.9.9.9"])
def test_servers_and_clients_inside_talk(wired, address):
    code = """
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
server = socket.create_server((sys.argv[1], 0), family=family)
def serve():
    peer, _ = server.accept()
    peer.sendall(b"inside")
threading.Thread(target=serve, daemon=True).start()
pair = [socket.socket(family, socket.SOCK_DGRAM) for _ in range(2)]
pair[0].bind((sys.argv[1], 0)); pair[0].settimeout(3)
pair[1].sendto(b"datagram", pair[0].getsockname())
tell(stream=call(sys.argv[1], server.getsockname()[1]).recv(10).decode(), datagram=pair[0].recv(10).decode())
"""
    expected = {"stream": "inside", "datagram": "datagram"}
    assert tried(wired, code, "alpha.example", arguments=[address]) == expected


def test_a_server_on_every_address_inside_is_not_taken_for_the_world(wired):
    """A guest that listens on a port of an allowed host still reaches that host."""
    code = f"""
server = socket.create_server(("0.0.0.0", {BANNER}))
tell(got=call(ALPHA, {BANNER}).recv(100).decode())
"""
    assert tried(wired, code, ALPHA[0])["got"].startswith("220 ")


def test_the_hosts_loopback_is_reached_by_its_rule(wired):
    listener = wired.listener("127.0.0.1")
    code = "tell(was=outcome(call, 'localhost', int(sys.argv[1])))"
    found = tried(wired, code, f"localhost:{listener.port}", arguments=[listener.port])
    assert found["was"][0] == "ok" and listener.called()


PUBLISHED = """
server = socket.create_server(("127.0.0.1", 8080))
print("ready", flush=True)
server.settimeout(10)
for _ in range(int(sys.argv[1])):
    peer, _ = server.accept()
    peer.sendall(b"from inside: " + peer.recv(10))
    peer.close()
"""


def free_port(wired) -> int:
    with wired.network.here(), socket.socket() as spare:
        spare.bind(("127.0.0.1", 0))
        return spare.getsockname()[1]


@pytest.mark.parametrize("rules", [("alpha.example",), ()], ids=["with-rules", "without"])
def test_a_published_port_is_reached_on_the_hosts_loopback_only(wired, rules):
    port = free_port(wired)
    mode = [] if rules else ["--network=loopback"]
    process = wired.jar().start(
        wired.python(GUEST + PUBLISHED, 2),
        policy=[*(f"--allow-net={rule}" for rule in rules), *mode, f"--publish={port}:8080"],
    )  # fmt: skip
    wired.scene.on_exit(process.kill)
    assert process.stdout.readline() == b"ready\n", process.stderr.read()
    for text in (b"one", b"two"):
        with wired.network.here():
            caller = socket.create_connection(("127.0.0.1", port), timeout=5)
        with caller:
            caller.sendall(text)
            assert caller.recv(100) == b"from inside: " + text
    with wired.network.here(), socket.socket() as stranger:
        stranger.settimeout(1)
        assert stranger.connect_ex((HERE[0], port)) != 0
    assert process.wait(timeout=10) == 0
    with wired.network.here(), socket.socket() as late:
        late.settimeout(1)
        assert late.connect_ex(("127.0.0.1", port)) != 0, "still open after the end"


def test_a_published_port_that_is_taken_is_said(wired):
    taken = wired.listener("127.0.0.1")
    run = wired.run(["/bin/true"], "alpha.example", policy=[f"--publish={taken.port}:8080"])
    assert run.exit == jars.OWN_FAILURE and str(taken.port) in run.stderr


# ------------------------------------------------------------------------- rules


@pytest.mark.parametrize(("rule", "reached", "denied"), [
    (f"203.0.113.0/28:{ECHO}-{DIGEST}", [(ALPHA[0], ECHO), (FOUR, DIGEST)],
     [(BETA[0], ECHO), (ALPHA[0], HTTP), (ALPHA[0], SOURCE)]),
    (f"[2001:db8:a::10]/124:{ECHO}", [(ALPHA[1], ECHO), (names.SIX, ECHO)], [(BETA[1], ECHO), (ALPHA[1], DIGEST)]),
    (ALPHA[0], [(ALPHA[0], ECHO), (ALPHA[0], HTTP)], [(FOUR, ECHO), (ALPHA[1], ECHO)]),
    (f"[{ALPHA[1]}]:{ECHO}", [(ALPHA[1], ECHO)], [(ALPHA[1], DIGEST), (ALPHA[0], ECHO)]),
    ("alpha.example", [("alpha.example", 80), ("alpha.example", 443)], [("alpha.example", ECHO), (BETA[0], 80)]),
    (f"alpha.example:{ECHO}", [("alpha.example", ECHO)], [("alpha.example", 80), ("beta.example", ECHO)]),
    (f"*.wild.example:{ECHO}", [("a.wild.example", ECHO), ("b.a.wild.example", ECHO)],
     [("wild.example", ECHO), ("evilwild.example", ECHO)]),
    (f"from-hosts.example:{ECHO}", [("from-hosts.example", ECHO)], [("alpha.example", ECHO)]),
    (f"alias.example:{ECHO}", [("alias.example", ECHO)], [("alpha.example", ECHO)]),
    ("10.20.30.40", [("10.20.30.40", ECHO)], [("10.20.30.41", ECHO), (names.METADATA, ECHO)]),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_a_rule_allows_what_it_says(wired, rule, reached, denied):
    code = """
tell(reached=[outcome(lambda: call(*to).close())[0] for to in json.loads(sys.argv[1])],
     denied=[outcome(lambda: call(*to).close()) for to in json.loads(sys.argv[2])])
"""
    found = tried(wired, code, rule, arguments=[json.dumps(reached), json.dumps(denied)])
    assert found["reached"] == ["ok"] * len(reached)
    for was, seconds in found["denied"]:
        assert was in (*DENIED, "no such name") and seconds < AT_ONCE


REACH_BOTH = """
tell(**{name.split(".")[0]: outcome(lambda: call(name, 7).close())[0] for name in sys.argv[1:]})
"""


def test_a_denied_host_wins(wired):
    hosts = ["a.wild.example", "b.a.wild.example"]
    rules = [f"*.wild.example:{ECHO}"]
    found = tried(wired, REACH_BOTH, *rules, arguments=hosts, policy=["--deny-net-hosts=b.a.wild.example"])
    assert found == {"a": "ok", "b": "no such name"}
    code = "tell(**{to: outcome(lambda: call(to, 7).close())[0] for to in (ALPHA, FOUR)})"
    found = tried(wired, code, "203.0.113.0/24", policy=[f"--deny-net-hosts={FOUR}"])
    assert found[ALPHA[0]] == "ok" and found[FOUR] in DENIED


def test_a_project_may_deny_hosts_without_being_trusted(wired):
    wired.scene.file("belljar.toml", '[sandbox]\ndeny_net_hosts = ["beta.example"]\n')
    rules = [f"alpha.example:{ECHO}", f"beta.example:{ECHO}"]
    found = tried(wired, REACH_BOTH, *rules, arguments=["alpha.example", "beta.example"])
    assert found == {"alpha": "ok", "beta": "no such name"}


def test_a_project_may_not_allow_hosts_without_being_trusted(wired):
    wired.scene.file("belljar.toml", '[sandbox]\nprofile = "restricted"\nallow_net = ["beta.example"]\n')
    mark = wired.services.mark()
    wired.run(["/usr/bin/curl", "-sS", "-m5", "http://beta.example/"], profile="restricted")
    assert not wired.services.since(mark, *BETA)


def test_a_group_stands_for_its_hosts(wired):
    text = f'[net_groups]\nfirst = ["alpha.example:{ECHO}"]\nboth = ["@first", "beta.example:{ECHO}"]\n'
    wired.scene.file(wired.scene.home / ".config/belljar/config.toml", text)
    hosts = ["alpha.example", "beta.example"]
    assert tried(wired, REACH_BOTH, "@first", arguments=hosts) == {"alpha": "ok", "beta": "no such name"}
    assert tried(wired, REACH_BOTH, "@both", arguments=hosts) == {"alpha": "ok", "beta": "ok"}


def test_full_is_the_hosts_own_network(wired):
    run = wired.run(["/usr/bin/curl", "-sS", "http://beta.example/"], policy=["--network=full"])
    assert run.exit == 0 and not (run.report or {}).get("network")


# --------------------------------------------------------------------------- names


def asked(wired, rules, transport: str, *questions: tuple[str, int]) -> list[tuple[int, list[tuple[int, bytes]]]]:
    """The code and the records that each question gets inside."""
    wired.scene.file("ask.py", (GUESTS / "ask.py").read_bytes())
    packets = [names.question(name, kind, number=77 + n).hex() for n, (name, kind) in enumerate(questions)]
    lines = wired.ok(["/usr/bin/python3", "-I", "ask.py", "", transport, *packets], *rules).splitlines()
    assert lines[-1] == "done" and not any(line.startswith("none") for line in lines), lines
    replies = [bytes.fromhex(line) for line in lines[:-1]]
    for number, reply in enumerate(replies):
        assert reply[:2] == (77 + number).to_bytes(2, "big") and reply[2] & 0x80, "not an answer to this question"
    return [names.read_reply(reply) for reply in replies]


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_names_are_answered(wired, transport):
    answers = asked(
        wired, ["alpha.example", "four.example", "six.example", "alias.example"], transport,
        ("alpha.example", names.A), ("alpha.example", names.AAAA), ("four.example", names.AAAA),
        ("six.example", names.A), ("alpha.example", names.HTTPS), ("alpha.example", names.SVCB),
        ("ALPHA.example", names.A), ("alias.example", names.A),
    )  # fmt: skip
    four, six = socket.inet_aton(ALPHA[0]), socket.inet_pton(socket.AF_INET6, ALPHA[1])
    found = [(code, [data for kind, data in records if kind != names.CNAME]) for code, records in answers]
    nothing = (names.OK, [])
    assert found == [
        (names.OK, [four]), (names.OK, [six]), nothing, nothing, nothing, nothing, (names.OK, [four]),
        (names.OK, [four]),
    ]  # fmt: skip


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_names_that_are_not_allowed_or_not_there_are_refused(wired, transport):
    began = time.monotonic()
    answers = asked(
        wired, ["alpha.example", "nowhere.example"], transport,
        ("beta.example", names.A), ("nowhere.example", names.A), ("alpha.example.evil.example", names.A),
    )  # fmt: skip
    assert time.monotonic() - began < QUICK
    for code, records in answers:
        assert code in (names.NO_SUCH_NAME, names.REFUSED) and not records


def test_a_name_server_that_never_answers_is_an_error_and_not_a_hang(wired):
    code = "tell(was=outcome(call, 'silent.example', 80))"
    was, seconds = tried(wired, code, "silent.example")["was"]
    assert was == "no such name" and seconds < 15


def test_localhost_is_the_guests_own(wired):
    code = "tell(found=sorted({each[4][0] for each in socket.getaddrinfo('localhost', 80)}))"
    assert set(tried(wired, code, "alpha.example")["found"]) <= {"127.0.0.1", "::1"}


def test_both_families_are_found_by_those_who_ask_what_is_configured(wired):
    code = """
found = socket.getaddrinfo("alpha.example", 80, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
tell(found=sorted(each[4][0] for each in found))
"""
    assert tried(wired, code, "alpha.example")["found"] == sorted(ALPHA)


# ------------------------------------------------------------------- what people see


def test_every_decision_is_an_event(wired):
    code = """
web = call("alpha.example", 80)
web.sendall(b"GET / HTTP/1.1\\r\\nHost: alpha.example\\r\\n\\r\\n")
web.recv(100)
tell(made=[outcome(lambda: call(*to).close())[0] for to in
           [(FOUR, 7), (BETA, 7), ("beta.example", 80), ("alpha.example", 7)]])
"""
    run = wired.run(wired.python(GUEST + code), "alpha.example", f"{FOUR}:{ECHO}")
    named = [event for event in decisions(run, "alpha.example", allowed=True) if event["port"] == HTTP]
    assert named and named[0]["rule"] == "alpha.example" and named[0]["protocol"] == "tcp"
    assert named[0]["name"] == "alpha.example" and named[0]["address"] in ALPHA
    assert "python" in named[0]["process"] and named[0]["pid"] > 0
    by_address = [event for event in events(run) if event["address"] == FOUR]
    assert by_address and by_address[0]["allowed"] and by_address[0]["rule"] == f"{FOUR}:{ECHO}"
    assert [event for event in events(run) if event["address"] == BETA[0] and not event["allowed"]]
    assert decisions(run, "beta.example", allowed=False)
    wrong_port = [event for event in decisions(run, "alpha.example", allowed=False) if event["port"] == ECHO]
    assert wrong_port and wrong_port[0]["why"]
    assert not any(event["why"] == "" for event in events(run) if not event["allowed"])


def test_a_denied_connection_says_which_rule_would_allow_it(wired):
    code = "tell(a=outcome(call, BETA, 7), b=outcome(call, BETA6, 7), c=outcome(call, 'alpha.example', 7))"
    run = wired.run(wired.python(GUEST + code), "alpha.example")
    for rule in (f"{BETA[0]}:{ECHO}", f"[{BETA[1]}]:{ECHO}", f"alpha.example:{ECHO}"):
        assert f"--allow-net={rule}" in run.stderr


def test_a_thousand_denials_are_not_a_thousand_lines(wired):
    """A guest that tries again and again does not flood the terminal."""
    code = "tell(n=len([outcome(call, BETA, 7) for _ in range(5000)]))"
    run = wired.run(wired.python(GUEST + code), "alpha.example")
    assert 0 < run.stderr.count(BETA[0]) < 50


def test_verbose_shows_what_was_allowed(wired):
    run = wired.run(["/usr/bin/curl", "-sS", "http://alpha.example/"], "alpha.example", policy=["--verbose"])
    assert "alpha.example" in run.stderr
    quiet = wired.run(["/usr/bin/curl", "-sS", "http://alpha.example/"], "alpha.example")
    assert "alpha.example" not in quiet.stderr


def test_explain_says_the_rules_in_words(wired):
    rules = ["--allow-net=alpha.example", "--allow-net=10.1.0.0/16:5432", "--allow-net=localhost:8080"]
    run = wired.outside.run([jars.binary(), "explain", *rules])
    assert run.exit == 0, run
    for words in ("alpha.example", "80", "443", "10.1.0.0/16", "5432", "localhost", "8080"):
        assert words in run.stdout, run


LINGERS = """
import os, socket, struct, sys, threading, time
black_hole, alpha, port = sys.argv[1], sys.argv[2], int(sys.argv[3])

def lingering(seconds):
    \"\"\"A socket whose last close waits for so long: nobody reads what it has sent.\"\"\"
    server = socket.create_server(("127.0.0.1", 0))
    line = socket.create_connection(server.getsockname())
    kept.append((server, server.accept()[0]))
    line.setblocking(False)
    try:
        while line.send(bytes(1 << 20)):
            pass
    except BlockingIOError:
        pass
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, seconds))
    return line

kept = []
line = lingering(1)
began = time.monotonic()
line.close()
print("closes after", round(time.monotonic() - began, 1))

# While the broker looks at it, through a copy, its maker closes it.
began = time.monotonic()
for _ in range(5):
    line = lingering(8)
    asks = threading.Thread(target=line.connect_ex, args=((black_hole, port),))
    asks.start()
    time.sleep(0.005)
    # Beside us: when the broker is late, this one is the last and waits.
    threading.Thread(target=os.close, args=(line.detach(),), daemon=True).start()
    asks.join()
with socket.create_connection((alpha, port), timeout=30) as line:
    line.sendall(b"knock")
    print("answered", line.recv(10), "after", round(time.monotonic() - began, 1), flush=True)
os._exit(0)
"""


def test_a_socket_that_lingers_does_not_stop_the_broker(wired):
    """Whoever closes it last waits for its data, and that may be the broker."""
    command = wired.python(LINGERS, names.BLACK_HOLE, names.ALPHA[0], ECHO)
    run = wired.run(command, names.BLACK_HOLE, names.ALPHA[0])
    assert run.exit == 0
    closed, answered = (float(line.split()[-1]) for line in run.stdout.splitlines())
    assert closed >= 1, "the socket does not linger"
    assert answered < 4, "the broker waited"
    assert run.seconds < 8, "the end waited"


HOLDS = """
import errno, os, resource, socket, sys
address, port, many = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (many + 50, many + 50))
lines, errors = [], set()
for _ in range(many):
    line = socket.socket()
    error = line.connect_ex((address, port))
    if error:
        errors.add(errno.errorcode[error])
    else:
        lines.append(line)
for line in lines:
    line.sendall(b"knock")
answered = sum(line.recv(10) == b"knock" for line in lines)
print(len(lines), answered, *errors, flush=True)
for line in lines[:10]:
    line.shutdown(socket.SHUT_WR)
    line.recv(1)  # the end of the other side: by then both are
    line.close()
line = socket.create_connection((address, port))
line.sendall(b"again")
print(line.recv(10).decode(), flush=True)
"""
DESCRIPTORS = 1024


def test_a_jar_takes_a_share_of_the_descriptors(wired):
    """Those that are left are the server's, and other jars'. What has ended makes room."""
    command = wired.python(HOLDS, ALPHA[0], ECHO, 600)

    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))

    run = wired.run(command, ALPHA[0], policy=["--max-open-fds=900"], preexec_fn=few)
    assert run.exit == 0
    held, answered, *errors, again = run.stdout.split()
    assert 50 <= int(held) < DESCRIPTORS / 4 and held == answered
    assert errors == ["ENOBUFS"]
    assert again == "again"
    assert any("too many connections" in event["why"] for event in events(run) if not event["allowed"])
