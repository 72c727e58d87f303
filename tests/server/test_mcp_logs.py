"""What MCP tells of a session, its log and its files, is kept in the session and ends with it."""

from __future__ import annotations

import pathlib

from test_http_mcp import answer_in, begin, message


def read_by_mcp(client, headers, name: str) -> str:
    """A quarter of a MiB of text, which goes into the log of the session too."""
    client.session(id=name)
    lines = b"".join(b"%0149d\n" % number for number in range(1900))
    assert client("PUT", f"/v1/sessions/{name}/files/long", lines).status == 201
    called = message(client, "tools/call", headers, 2, name="read", arguments={"session": name, "path": "long"})
    return answer_in(called)["result"]["content"][0]["text"]


def log_of(client, headers, name: str) -> str:
    found = answer_in(message(client, "resources/read", headers, 3, uri=f"session://{name}/log"))
    return found["result"]["contents"][0]["text"]


def test_the_log_of_a_session_ends_with_it(server, ann):
    headers = begin(ann)

    def resident() -> int:
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) << 10

    def open_and_close(names) -> int:
        size = 0
        for name in names:
            read_by_mcp(ann, headers, name)
            size += len(log_of(ann, headers, name))
            assert ann.delete(f"/v1/sessions/{name}").status == 204
        return size

    open_and_close(f"warm{number}" for number in range(8))
    before = resident()
    held = open_and_close(f"s{number}" for number in range(100))
    assert held > 20 << 20, "the control: so much could be left"
    assert resident() < before + (8 << 20)


def test_the_log_of_a_session_is_not_that_of_the_next_of_its_name(server, ann):
    headers = begin(ann)
    read_by_mcp(ann, headers, "one")
    assert "long" in log_of(ann, headers, "one"), "the control"
    assert ann.delete("/v1/sessions/one").status == 204
    ann.session(id="one")
    assert log_of(ann, headers, "one") == ""
