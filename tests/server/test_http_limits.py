"""What one token can take from the others, and what is left of it when it is taken away."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import stat
import threading
import time

import pytest
import serving
from test_http_attacks import tool
from test_http_mcp import BOTH, answer_in, begin, message, sessions_of

EVENT_STREAMS = 32  # of one token
MCP_SESSIONS = 64
STATELESS = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


@contextlib.contextmanager
def hammering(*calls):
    """Each again and again, in a thread of its own."""
    over = threading.Event()

    def work(call):
        while not over.is_set():
            call()

    threads = [threading.Thread(target=work, args=(each,)) for each in calls]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        over.set()
        for each in threads:
            each.join()


def timed(call) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


# ------------------------------------------------------- time of others


def test_patterns_that_take_a_search_keep_nobody_waiting(server, ann, bob, scene):
    tree = scene.home / "wide"
    for folder in range(30):
        (tree / str(folder)).mkdir(parents=True)
        for file in range(200):
            (tree / str(folder) / str(file)).touch()
    policy = {"hide": [f"{tree}/**/**/zz{n}*" for n in range(16)]}
    sessions = [ann.session(policy=policy) for _ in range(4)]
    look = f"/v1/sessions/{sessions[0]}"
    search = timed(lambda: ann.get(look))

    def start_a_jar():
        session = sessions.pop()
        assert ann.post(f"/v1/sessions/{session}/shell", commands=["true"]).status == 200
        ann.delete(f"/v1/sessions/{session}")
        sessions.append(ann.session(policy=policy))

    calls = [lambda: ann.get(look), lambda: ann.get(f"{look}/files"), lambda: ann.get(f"{look}/tools"), start_a_jar]
    with hammering(*calls):
        others = []
        until = time.monotonic() + max(2, 3 * search)
        while time.monotonic() < until or len(others) < 20:
            others.append(timed(lambda: bob.get("/v1/sessions")))
    # On the loop, one of four searches at least would be waited for, and mostly all of them.
    assert sorted(others)[len(others) // 2] < search, (search, sorted(others))


# ------------------------------------------------------ places of others


def test_a_token_has_so_many_event_streams(server, ann, bob):
    streams = [ann.stream("GET", "/v1/events") for _ in range(EVENT_STREAMS)]
    refused = ann.get("/v1/events")
    assert refused.status == 429 and refused.headers["Retry-After"] and refused.error["type"] == "too_many_requests"
    with bob.stream("GET", "/v1/events") as others:
        others.until("hello")
    streams.pop().connection.close()

    def is_there_room():
        with contextlib.suppress(AssertionError):
            streams.append(ann.stream("GET", "/v1/events"))
            return True

    assert serving.wait_until(is_there_room)
    for each in streams:
        each.connection.close()


def test_a_token_has_so_many_sessions_of_the_protocol(server, ann, bob):
    mine = [begin(ann) for _ in range(MCP_SESSIONS)]
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    refused = message(ann, "initialize", **hello)
    assert refused.status == 429 and refused.headers["Retry-After"], refused
    assert begin(bob), "the control: others may"
    assert ann("DELETE", "/mcp", headers=mine[0]).status == 204
    assert message(ann, "initialize", **hello).status == 200
    assert message(ann, "tools/list", mine[1], 2).status == 200, "none had to go for it"


def test_a_session_of_the_protocol_ends_when_nobody_uses_it_or_listens(start):
    ann = start(session='idle = "1s"').client("ann")
    heard, left = begin(ann), begin(ann)
    with ann.stream("GET", "/mcp", headers=heard):
        time.sleep(1.5)
        assert message(ann, "tools/list", left, 2).status == 404
    assert message(ann, "tools/list", heard, 2).status == 200


def listen(client, **wanted) -> serving.Events:
    params = {"notifications": wanted, "_meta": STATELESS}
    headers = {**BOTH, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"}
    fields = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}
    return serving.Events(client, "POST", "/mcp", headers, fields)


def test_a_token_has_so_many_that_listen(server, ann, bob):
    streams = [listen(ann, toolsListChanged=True) for _ in range(EVENT_STREAMS)]
    with pytest.raises(AssertionError, match="too many"):
        listen(ann, toolsListChanged=True)
    listen(bob, toolsListChanged=True).connection.close()
    for each in streams:
        each.connection.close()


def test_what_is_subscribed_to_has_a_length(server, ann):
    headers = begin(ann)
    fits = "session://x/files/" + "a" * 4000
    assert "result" in answer_in(message(ann, "resources/subscribe", headers, 2, uri=fits))
    refused = answer_in(message(ann, "resources/subscribe", headers, 3, uri=fits + "a" * 100))
    assert "too long" in refused["error"]["message"]
    with pytest.raises(AssertionError, match="too long"):
        listen(ann, resourceSubscriptions=["session://x/files/" + "a" * 70_000])
    listen(ann, resourceSubscriptions=[fits]).connection.close()


def test_what_a_client_says_of_itself_has_a_length(server, ann):
    """It is kept as long as the session of the protocol."""
    hello = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "test", "version": "1"}}
    for size, fits in ((60 << 10, True), (64 << 10, False)):
        said = answer_in(message(ann, "initialize", capabilities={"experimental": {"x": {"y": "x" * size}}}, **hello))
        assert ("result" in said) is fits, str(said)[:1000]
        assert fits or (said["error"]["code"] == -32602 and "too long" in said["error"]["message"])


def test_who_hangs_up_still_counts_while_his_call_runs(start):
    server = start(config="max_requests = 2")
    ann = server.client("ann")
    sleep = {"code": "print('on', flush=True)\nimport time\ntime.sleep(300)", "timeout_ms": 300_000}
    for number in range(2):
        headers = {**BOTH, **begin(ann)}
        call = {"name": "python", "arguments": sleep, "_meta": {"progressToken": 1}}
        fields = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
        with serving.Events(ann, "POST", "/mcp", headers, fields) as stream:
            assert any(b'"on' in line for line in iter(stream.answer.readline, b""))
    refused = ann.get("/v1/sessions")
    assert refused.status == 429, refused
    assert server.client("bob").get("/v1/sessions").status == 200


def test_a_policy_has_so_many_values(server, ann):
    paths = [f"/usr/share/none{n}" for n in range(257)]
    refused = ann.post("/v1/sessions", policy={"hide": paths})
    assert refused.status == 400 and "256" in refused.error["message"]
    assert ann.post("/v1/sessions", policy={"hide": paths[:256]}).status == 201


def test_room_is_made_by_who_needs_it(start):
    """Sessions that were idle and ended are kept in mind: another's are not forgotten for ours."""
    server = start(config="max_sessions_per_token = 2", session='idle = "300ms"\nreap_every = "100ms"')
    ann, bob = server.client("ann"), server.client("bob")
    ann.session(id="kept")
    ended = "belljar_sessions 0"
    assert serving.wait_until(lambda: ended in ann.get("/metrics").body.decode())
    for _ in range(4):
        bob.session()
        assert serving.wait_until(lambda: ended in bob.get("/metrics").body.decode())
    assert [each["id"] for each in sessions_of(ann)] == ["kept"]
    assert len(sessions_of(bob)) <= 2, "the control: his own were"


# ------------------------------------------------- a token taken away


def reload(server, tokens: dict) -> None:
    told = server.errors().count("read again")
    server.write_tokens(tokens)
    server.signal(signal.SIGHUP)
    assert serving.wait_until(lambda: server.errors().count("read again") > told), server.errors()


def reads_to_its_end(stream) -> bool:
    while stream.answer.readline():
        pass
    return True


WITHOUT_ANN = {name: each for name, each in serving.TOKENS.items() if name != "ann"}
CHANGED = {
    "revoked": WITHOUT_ANN,
    "another": {**WITHOUT_ANN, "ann": ("run,approve", "ann-token-fedcba9876543210")},
    "may less": {**WITHOUT_ANN, "ann": ("dispatch", serving.TOKENS["ann"][1])},
}


@pytest.mark.parametrize("what", CHANGED)
def test_what_a_token_has_open_ends_with_it(server, ann, bob, what):
    session = ann.session()
    protocol = begin(ann)
    others = begin(bob)
    sleep = "print('on', flush=True)\nimport time\ntime.sleep(300)"
    call = ann.stream("POST", f"/v1/sessions/{session}/python", code=sleep, timeout_ms=300_000)
    call.until("output")
    open_streams = [
        call,
        ann.stream("GET", "/v1/events"),
        ann.stream("GET", "/mcp", headers=protocol),
        listen(ann, toolsListChanged=True),
    ]
    hears = bob.stream("GET", "/v1/events")
    hears.until("hello")
    reload(server, CHANGED[what])
    assert all(reads_to_its_end(each) for each in open_streams)
    new = serving.Client(server, CHANGED[what].get("ann", serving.TOKENS["ann"])[1])
    assert message(new, "tools/list", protocol, 2).status in (401, 403, 404)
    bob.session(id="news")  # the control: another token's go on
    assert hears.until("session_created")["session_id"] == "news"
    assert message(bob, "tools/list", others, 2).status == 200
    hears.connection.close()


def test_a_token_that_stays_loses_nothing(server, ann):
    protocol = begin(ann)
    hears = ann.stream("GET", "/v1/events")
    hears.until("hello")
    path = ann.post(f"/v1/sessions/{ann.session()}/dispatch").json["path"]
    hears.until("session_created")
    reload(server, {**serving.TOKENS, "ann": ("run,approve,read", serving.TOKENS["ann"][1])})
    ann.session(id="news")
    assert hears.until("session_created")["session_id"] == "news"
    assert message(ann, "tools/list", protocol, 2).status == 200
    assert server.client(None).post(path, name="python", arguments={"code": "1"}).status == 200
    hears.connection.close()


@pytest.mark.parametrize("what", ["revoked", "another"])
def test_an_address_ends_with_the_token_that_made_it(server, ann, bob, what):
    paths = [each.post(f"/v1/sessions/{each.session()}/dispatch").json["path"] for each in (ann, bob)]
    nobody = server.client(None)
    call = {"name": "python", "arguments": {"code": "1"}}
    assert [nobody.post(path, **call).status for path in paths] == [200, 200]
    reload(server, CHANGED[what])
    assert [nobody.post(path, **call).status for path in paths] == [401, 200]


# --------------------------------------------------------- what is kept


def lines_of(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_token_has_an_audit_trail_of_its_own(start, scene):
    """So that one that fills its own pushes nothing of another's out."""
    file = scene.home / "trail.jsonl"
    server = start(audit=str(file))
    for name in ("ann", "bob"):
        client = server.client(name)
        client.python(client.session(), f"'by {name}'")
    for name in ("ann", "bob"):
        own = scene.home / f"trail.{name}.jsonl"
        assert stat.S_IMODE(own.stat().st_mode) == 0o600
        assert {each["principal"] for each in lines_of(own)} == {name}
        assert [each["arguments"]["code"] for each in lines_of(own) if each["event"] == "call"] == [f"'by {name}'"]
    assert lines_of(file) == []


def test_lines_that_the_audit_lost_are_counted(start, scene):
    server = start(audit=str(scene.home / "trail.jsonl"))
    bob, ann = server.client("bob"), server.client("ann")
    bob.python(bob.session(), "1")
    assert "\nbelljar_audit_lost_total 0\n" in ann.get("/metrics").body.decode(), "the control"
    (scene.home / "trail.ann.jsonl").mkdir()  # where no line can be written
    ann.python(ann.session(), "1")
    found = re.search(r"^belljar_audit_lost_total (\d+)$", ann.get("/metrics").body.decode(), re.MULTILINE)
    assert int(found[1]) > 0


def test_a_call_that_never_ended_is_in_the_audit(start, scene):
    server = start(audit=str(scene.home / "trail.jsonl"))
    ann = server.client("ann")
    session = ann.session()
    code = "import time\nprint('begun', flush=True)\ntime.sleep(600)"
    with ann.stream("POST", f"/v1/sessions/{session}/python", code=code) as events:
        events.until("output")
        server.kill()
    (began,) = [each for each in lines_of(scene.home / "trail.ann.jsonl") if each.get("tool") == "python"]
    assert (began["event"], began["session"], began["arguments"]) == ("began", session, {"code": code})


def test_a_line_of_the_audit_trail_has_a_length(start, scene):
    server = start(audit=str(scene.home / "trail.jsonl"))
    ann = server.client("ann")
    session = ann.session()
    many = {f"key{n}": ["x" * 2000] * 90 for n in range(90)}
    assert tool(ann, session, "read", **many)["is_error"]
    assert tool(ann, session, "read", path="x", agent="a" * 1_000_000)["is_error"]
    headers = begin(ann)
    named = {"name": "python", "arguments": {"code": "1", "session": "s" * 1_000_000}}
    assert answer_in(message(ann, "tools/call", headers, 2, **named))["result"]["isError"]
    text = (scene.home / "trail.ann.jsonl").read_text()
    assert max(map(len, text.splitlines())) < 48 << 10 and text.count('"event":"call"') == 3


def test_the_folder_of_tokens_and_trails_is_its_owners(start, scene):
    state = scene.home / "state"
    (state / "belljar").mkdir(parents=True, mode=0o755)
    scene.identity.own(state, state / "belljar")
    server = start(own_state=str(state))
    assert stat.S_IMODE((state / "belljar").stat().st_mode) == 0o700
    token = (state / "belljar/tokens").read_text().split()[2]
    client = serving.Client(server, token)
    client.python(client.session(), "1")
    assert lines_of(state / "belljar/audit.default.jsonl"), "so a trail is kept there"
