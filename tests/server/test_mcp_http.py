"""The MCP endpoint over HTTP: sessions of the protocol, streams that are lost, clients that hang up."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import time

import jar as jars
import pytest

STATELESS = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture(scope="module")
def port(belljar, tmp_path_factory):
    folder = tmp_path_factory.mktemp("endpoint")
    driver = os.path.join(os.path.dirname(belljar), "mcp_driver")
    with open(folder / "errors", "w") as errors:
        process = subprocess.Popen([driver], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=folder)
        yield int(process.stdout.readline())
        process.stdin.close()
        assert process.wait(30 * jars.SLOWER) == 0
        process.stdout.close()


class Http:
    def __init__(self, port: int):
        self.port = port
        self.session: str | None = None

    def send(self, method: str, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60 * jars.SLOWER)
        more = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if self.session:
            more["Mcp-Session-Id"] = self.session
        more.update({name.replace("_", "-"): value for name, value in headers.items()})
        connection.request(method, "/mcp", None if body is None else json.dumps(body), more)
        return connection, connection.getresponse()

    def call(self, method: str, number: int = 1, headers: dict | None = None, **params):
        connection, answer = self.send(
            "POST", {"jsonrpc": "2.0", "id": number, "method": method, "params": params}, **(headers or {})
        )
        text = answer.read().decode()
        connection.close()
        return answer.status, json.loads(text) if text else None

    def initialize(self) -> Http:
        connection, answer = self.send(
            "POST",
            {"jsonrpc": "2.0", "id": 0, "method": "initialize",
             "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
        )  # fmt: skip
        assert answer.status == 200
        self.session = answer.headers["Mcp-Session-Id"]
        answer.read()
        connection.close()
        return self


def events(answer):
    """Of a stream: (id, data)."""
    number, data = "", ""
    while line := answer.readline().decode():
        line = line.rstrip("\n")
        if line.startswith("id: "):
            number = line[4:]
        elif line.startswith("data: "):
            data = line[6:]
        elif not line:
            yield number, json.loads(data) if data else None
            number, data = "", ""


def stateless_headers(method: str, name: str) -> dict:
    return {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": method, "Mcp_Name": name}


def test_requests_need_a_session_that_is_there(port):
    client = Http(port)
    assert client.call("tools/list")[0] == 400
    client.session = "0" * 32
    assert client.call("tools/list")[0] == 404


def test_delete_ends_a_session_and_what_was_made_for_it(port):
    client = Http(port).initialize()
    status, answer = client.call("tools/call", name="python", arguments={"code": "1"})
    own = answer["result"]["structuredContent"]["session"]
    connection, gone = client.send("DELETE")
    assert gone.status == 204
    connection.close()
    assert client.call("tools/list")[0] == 404
    other = Http(port).initialize()
    listed = other.call("tools/call", name="session_list", arguments={})[1]["result"]["structuredContent"]["sessions"]
    assert own not in [one["session"] for one in listed]


def test_a_lost_stream_is_taken_up_where_it_was(port):
    client = Http(port).initialize()
    code = "print('begun', flush=True)\nimport time\ntime.sleep(2)\n'the end'"
    call = {"jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": {"name": "python", "arguments": {"code": code}, "_meta": {"progressToken": 1}}}  # fmt: skip
    connection, answer = client.send("POST", call)
    for last, data in events(answer):
        if data and "begun" in json.dumps(data):
            break
    connection.sock.close()
    answer.close()
    connection, rest = client.send("GET", Last_Event_ID=last)
    assert rest.status == 200
    got = [data for _, data in events(rest) if data and data.get("id") == 7]
    assert got[0]["result"]["structuredContent"]["result"] == "'the end'"
    connection.close()


def test_who_hangs_up_in_the_stateless_era_has_cancelled(port):
    client = Http(port)
    headers = stateless_headers("tools/call", "python")
    arguments = {"code": "print('begun', flush=True)\nwhile True: pass", "session": "hangs-up"}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "python", "arguments": arguments, "_meta": {**STATELESS, "progressToken": 1}}}  # fmt: skip
    connection, answer = client.send("POST", call, **headers)
    next(events(answer))
    began = time.monotonic()
    connection.sock.close()
    answer.close()
    arguments = {"code": "6 * 7", "session": "hangs-up"}
    status, done = client.call("tools/call", headers=headers, name="python", arguments=arguments, _meta=STATELESS)
    assert done["result"]["structuredContent"]["result"] == "42"
    assert time.monotonic() - began < 20 * jars.SLOWER, "the loop had 60 s"


@pytest.mark.parametrize("header, value", [("Mcp_Method", "tools/list"), ("Mcp_Name", "shell"), ("MCP_Protocol_Version", "2025-11-25")])
def test_headers_that_disagree_with_the_body_are_refused(port, header, value):
    headers = {**stateless_headers("tools/call", "python"), header: value}
    status, answer = Http(port).call("tools/call", headers=headers, name="python", arguments={"code": "1"}, _meta=STATELESS)
    assert status == 400 and answer["error"]["code"] == -32020
