"""MCP over HTTP, behind the server's own door."""

import json

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
