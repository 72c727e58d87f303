"""MCP over HTTP, behind the server's own door."""

from __future__ import annotations

import itertools
import json
import re
import threading
import time

import pytest
import serving

LOOP = "print('begun', flush=True)\nwhile True: pass"
BOTH = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def message(client, method: str, headers: dict | None = None, number: int = 1, **params):
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
    return client("POST", "/mcp", body, {**BOTH, **(headers or {})})


def answer_in(answer) -> dict:
    if answer.headers["Content-Type"].startswith("application/json"):
        return answer.json
    lines = [line[6:] for line in answer.body.decode().splitlines() if line.startswith("data: ")]
    return next(each for each in map(json.loads, filter(str.strip, lines)) if "id" in each)


def begin(client) -> dict:
    answer = message(
        client, "initialize", protocolVersion="2025-11-25", capabilities={},
        clientInfo={"name": "test", "version": "1"},
    )  # fmt: skip
    assert answer.status == 200, answer
    assert answer_in(answer)["result"]["protocolVersion"] == "2025-11-25"
    headers = {"Mcp-Session-Id": answer.headers["Mcp-Session-Id"], "MCP-Protocol-Version": "2025-11-25"}
    told = client(
        "POST", "/mcp", json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode(),
        {**BOTH, **headers},
    )  # fmt: skip
    assert told.status == 202, told
    return headers


def test_mcp_needs_a_token_and_no_other_origin(server, ann):
    assert message(server.client(None), "ping").status == 401
    assert message(server.client("eye"), "ping").status == 403
    assert message(ann, "ping", {"Origin": "http://evil.example"}).status == 403


def test_tools_are_called_over_mcp(server, ann):
    headers = begin(ann)
    tools = answer_in(message(ann, "tools/list", headers, 2))["result"]["tools"]
    assert {"python", "shell"} <= {each["name"] for each in tools}
    called = message(ann, "tools/call", headers, 3, name="python", arguments={"code": "6 * 7"})
    result = answer_in(called)["result"]
    assert result["content"][0]["text"] == "42\n", result


def test_another_token_cannot_use_the_protocols_session(server, ann, bob):
    headers = begin(ann)
    assert message(bob, "tools/list", headers, 2).status in (400, 404)


def test_what_is_streamed_says_that_it_is(server, ann):
    """A client reads by the type: what comes as events is not JSON."""
    headers = begin(ann)
    progress = {"progressToken": 1}
    call = {"name": "python", "arguments": {"code": "print('x', flush=True)"}, "_meta": progress}
    streamed = message(ann, "tools/call", headers, 2, **call)
    assert streamed.headers["Content-Type"] == "text/event-stream", streamed
    assert answer_in(streamed)["id"] == 2
    assert message(ann, "tools/list", headers, 3).headers["Content-Type"] == "application/json"


def test_a_cancelled_call_ends_its_stream_without_an_answer(server, ann):
    headers = begin(ann)
    call = {"name": "python", "arguments": {"code": LOOP}, "_meta": {"progressToken": 1}}
    fields = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}
    with serving.Events(ann, "POST", "/mcp", {**BOTH, **headers}, fields) as stream:
        said = iter(stream.answer.readline, b"")
        assert any(b"begun" in line for line in said)
        told = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
        assert ann("POST", "/mcp", json.dumps(told).encode(), {**BOTH, **headers}).status == 202
        assert not any(b'"result"' in line or b'"error"' in line for line in said), "and it ended"
    again = message(ann, "tools/call", headers, 7, name="python", arguments={"code": "6 * 7"})
    assert answer_in(again)["result"]["structuredContent"]["result"] == "42", "its id can be used again"


def test_who_hangs_up_in_the_stateless_era_has_cancelled_whether_or_not_anything_was_said(server, ann):
    """Its time is 60 s, and calls of one session wait for one another."""
    version = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    headers = {**BOTH, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "python"}
    began = time.monotonic()
    for more in ({"progressToken": 1}, {}):
        for code in (LOOP, "6 * 7"):
            params = {"name": "python", "arguments": {"code": code, "session": "hangs-up"}, "_meta": {**version, **more}}
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
            if code == LOOP:
                with server.connect() as connection:
                    lines = [f"{name}: {value}" for name, value in headers.items()]
                    lines += [f"Authorization: Bearer {ann.token}", "Host: localhost", f"Content-Length: {len(body)}"]
                    connection.sendall("\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode() + body)
                    assert serving.wait_until(lambda: any(one["busy"] for one in sessions_of(ann)))
            else:
                assert answer_in(ann("POST", "/mcp", body, headers))["result"]["structuredContent"]["result"] == "42"
    assert time.monotonic() - began < 50, "nobody waited for the loops"


NUMBERS = itertools.count(100)


def tool(client, headers: dict, name: str, **arguments) -> dict:
    answer = message(client, "tools/call", headers, next(NUMBERS), name=name, arguments=arguments)
    return answer_in(answer)["result"]


def test_what_was_told_of_a_session_is_not_told_of_the_next_of_its_name(server, ann):
    headers = begin(ann)
    tool(ann, headers, "shell", session="desk", commands=["echo the-secret-of-ann; touch names-of-ann"])
    log = answer_in(message(ann, "resources/read", headers, 6, uri="session://desk/log"))
    assert "the-secret-of-ann" in str(log), "the control"
    assert ann.delete("/v1/sessions/desk").status == 204
    bob = server.client("bob")
    headers = begin(bob)
    assert not tool(bob, headers, "shell", session="desk", commands=["echo bob"])["isError"]
    seen = str(answer_in(message(bob, "resources/read", headers, 6, uri="session://desk/log")))
    seen += str(answer_in(message(bob, "resources/list", headers, 7)))
    assert "bob" in seen and "ann" not in seen, seen


@pytest.mark.parametrize("way", ["mcp", "rest"])
def test_a_call_that_waited_does_not_run_in_the_next_session_of_its_name(server, ann, way):
    bob, headers = server.client("bob"), begin(ann)
    assert ann.post("/v1/sessions", id="desk").status == 201
    answers: list = []
    commands = ["touch came-from-ann"]

    def late() -> None:
        if way == "mcp":
            answers.append(tool(ann, headers, "shell", session="desk", commands=commands))
        else:
            answers.append(ann.post("/v1/sessions/desk/shell", commands=commands).json)

    first = threading.Thread(target=lambda: ann.post("/v1/sessions/desk/shell", commands=["sleep 60"]))
    others = [threading.Thread(target=late) for _ in range(5)]
    first.start()
    assert serving.wait_until(lambda: any(one["busy"] for one in sessions_of(ann)))
    for thread in others:
        thread.start()
    # They wait for the first one: of each the server knows by now.
    assert serving.wait_until(lambda: server_requests(ann) >= 7)
    assert ann.delete("/v1/sessions/desk").status == 204
    assert bob.post("/v1/sessions", id="desk").status == 201
    for thread in (first, *others):
        thread.join(60)
    assert len(answers) == 5 and all("the session was closed" in str(one) for one in answers), answers
    assert bob.post("/v1/sessions/desk/shell", commands=["ls"]).json["stdout"] == "", "nothing of ann's ran there"
    assert [one["id"] for one in sessions_of(bob)] == ["desk"] and not sessions_of(ann)


def server_requests(client) -> int:
    found = re.search(r"^belljar_requests_running (\d+)", client.get("/metrics").body.decode(), re.MULTILINE)
    return int(found[1])


def test_a_session_that_was_idle_comes_back_by_mcp_under_its_own_policy(start):
    ann = start(session='idle = "1s"\nreap_every = "100ms"').client("ann")
    session = ann.session(policy={"network": "none"})
    ann.python(session, "x = 1")
    assert serving.wait_until(lambda: "belljar_sessions 0" in ann.get("/metrics").body.decode())
    code = "import socket\nsocket.socket(socket.AF_INET)"
    answer = tool(ann, begin(ann), "python", session=session, code=code)
    assert answer["isError"] and "Error" in str(answer["content"]), answer
    control = tool(ann, begin(ann), "python", session=ann.session(), code=code + " and 1")
    assert not control["isError"], control


def test_calls_without_a_connection_or_a_name_do_not_use_up_the_sessions(start):
    """A model that does not pass on the name of its session has the last few, and no error."""
    ann = start(config="max_sessions_per_token = 6").client("ann")
    version = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    headers = {**BOTH, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "shell"}

    def call(**arguments) -> str:
        params = {"name": "shell", "arguments": {"commands": ["true"], **arguments}, "_meta": version}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        result = answer_in(ann("POST", "/mcp", body, headers))["result"]
        assert not result["isError"], result
        return result["structuredContent"]["session"]

    kept = call()
    assert call(session=kept) == kept  # named, so it stays
    made = [call() for _ in range(8)]
    assert len(set(made)) == 8
    left = {one["id"] for one in sessions_of(ann)}
    assert left == {kept, *made[-4:]}, left


def sessions_of(client) -> list[dict]:
    return client.get("/v1/sessions").json["sessions"]


def test_sessions_of_mcp_are_listed_for_the_token_that_made_them(server, ann, bob):
    headers = begin(ann)
    call = {"name": "python", "arguments": {"code": "open('x', 'w').write('1')"}}
    own = answer_in(message(ann, "tools/call", headers, 2, **call))["result"]["structuredContent"]["session"]
    named = {"name": "shell", "arguments": {"commands": ["true"], "session": "by-name"}}
    assert not answer_in(message(ann, "tools/call", headers, 3, **named))["result"]["isError"]
    assert {one["id"] for one in sessions_of(ann)} == {own, "by-name"}
    assert {one["profile"] for one in sessions_of(ann)} == {"developer"}
    assert sessions_of(bob) == []
    assert ann.get(f"/v1/sessions/{own}/files/x").body == b"1"
    assert bob.get(f"/v1/sessions/{own}/files/x").status == 404
    assert ann.delete("/v1/sessions/by-name").status == 204
    assert {one["id"] for one in sessions_of(ann)} == {own}
    assert ann("DELETE", "/mcp", headers=headers).status == 204
    assert sessions_of(ann) == [], "a connection's own ends with it"


def test_nobody_takes_a_session_that_another_token_has_made(server, ann, bob):
    """Also before its first call, and by whatever way."""
    ann.session(id="mine")
    call = {"name": "shell", "arguments": {"commands": ["test ! -e been-here && touch been-here"], "session": "mine@ann"}}
    stolen = answer_in(message(bob, "tools/call", begin(bob), 2, **call))["result"]
    assert stolen["structuredContent"]["error_type"] == "not_found", stolen
    call["arguments"]["session"] = "mine"
    for client in (bob, ann):  # each has one of his own
        done = answer_in(message(client, "tools/call", begin(client), 2, **call))["result"]
        assert not done["isError"], done
    made = {"name": "shell", "arguments": {"commands": ["true"], "session": "by-mcp"}}
    assert not answer_in(message(ann, "tools/call", begin(ann), 2, **made))["result"]["isError"]
    assert bob.post("/v1/sessions/by-mcp/python", code="1").status == 404
    assert bob.post("/v1/sessions/by-mcp@ann/python", code="1").status == 404
    assert ann.post("/v1/sessions/by-mcp/python", code="1").status == 200, "the control"


def test_names_that_are_none_make_no_session(server, ann):
    call = {"name": "shell", "arguments": {"commands": ["true"], "session": "../x"}}
    assert answer_in(message(ann, "tools/call", begin(ann), 2, **call))["result"]["isError"]
    assert sessions_of(ann) == []


def test_sessions_of_mcp_count_for_the_most_that_a_token_may_have(start):
    server = start(config="max_sessions_per_token = 2")
    ann = server.client("ann")
    headers = begin(ann)

    def call(session):
        arguments = {"commands": ["true"], "session": session}
        return answer_in(message(ann, "tools/call", headers, 2, name="shell", arguments=arguments))["result"]

    assert not call("a")["isError"] and not call("b")["isError"]
    assert "the most allowed" in call("c")["content"][0]["text"]
    assert ann.delete("/v1/sessions/a").status == 204
    assert not call("c")["isError"]


def test_who_may_not_approve_is_not_asked(start):
    """The client answers for its person, so it must be one that may decide."""
    tokens = {**serving.TOKENS, "run": ("run", "run-token-0123456789abcdef")}
    server = start("--permission=ask", tokens=tokens)
    era = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "python"}
    call = {"name": "python", "arguments": {"code": "6 * 7"}, "_meta": era}
    control = answer_in(message(server.client("ann"), "tools/call", headers, 1, **call))["result"]
    assert control["resultType"] == "input_required"

    answers = []
    asks = threading.Thread(
        target=lambda: answers.append(message(serving.Client(server, tokens["run"][1]), "tools/call", headers, 2, **call))
    )
    asks.start()
    boss = server.client("boss")
    assert serving.wait_until(lambda: boss.get("/v1/approvals").json["approvals"]), "it waits for somebody else"
    (waiting,) = boss.get("/v1/approvals").json["approvals"]
    assert boss.post(f"/v1/approvals/{waiting['approval_id']}", decision="deny").status == 200
    asks.join()
    assert answer_in(answers[0])["result"]["isError"]
