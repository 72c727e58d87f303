"""What a call is given has a length, which is looked at before anything is done with it."""

from __future__ import annotations

import json
import pathlib

import pytest

LONG = "a/" * 4000
TOOLS = {
    "read": {"path": "f"},
    "write": {"path": "f", "content": "x\n"},
    "edit": {"path": "f", "old_string": "x", "new_string": "y"},
    "glob": {"path": ".", "pattern": "*"},
    "grep": {"path": ".", "pattern": "x"},
}


def tool(client, session: str, name: str, **arguments) -> dict:
    # Some have a member `path`, as has who sends them.
    body = json.dumps(arguments).encode()
    answer = client("POST", f"/v1/sessions/{session}/tools/{name}", body, {"Content-Type": "application/json"})
    assert answer.status == 200, answer
    return answer.json


def spawn(client, session: str, *words: str, **fields):
    return client.post(f"/v1/sessions/{session}/spawn", arguments=list(words), **fields)


def peak_kb(server) -> int:
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


@pytest.mark.parametrize("name", TOOLS)
def test_long_paths_are_refused_at_once(server, ann, name):
    session = ann.session()
    assert ann("PUT", f"/v1/sessions/{session}/files/f", b"x\n").status == 201
    refused = tool(ann, session, name, **{**TOOLS[name], "path": LONG})
    assert refused["error_type"] == "invalid_arguments" and "path must have at most" in refused["text"], refused
    if "pattern" in TOOLS[name]:
        refused = tool(ann, session, name, **{**TOOLS[name], "pattern": LONG})
        assert refused["error_type"] == "invalid_arguments", refused
    assert not tool(ann, session, name, **TOOLS[name])["is_error"], "the control"


def test_a_value_of_a_policy_has_a_length(server, ann):
    for key in ("hide", "protect", "allow_read"):
        refused = ann.post("/v1/sessions", policy={key: ["/usr/share/" + "n" * 4096]})
        assert refused.status == 400 and "4096 bytes" in refused.error["message"], refused
    assert ann.post("/v1/sessions", policy={"hide": ["/usr/share/none"]}).status == 201, "the control"


def test_variables_are_so_many(server, ann):
    session = ann.session()
    many = {f"V{n}": "x" for n in range(1001)}
    long = {f"V{n}": "x" * 100_000 for n in range(11)}
    for given, said in ((many, "1000 members"), (long, "1 MiB")):
        for stream in (False, True):
            refused = spawn(ann, session, "true", environment=given, stream=stream)
            assert refused.status == 400 and said in refused.error["message"], refused
        started = tool(ann, session, "process_start", arguments=["true"], environment=given)
        assert started["error_type"] == "invalid_arguments" and said in started["text"], started
    few = {f"V{n}": "x" for n in range(1000)}
    assert spawn(ann, session, "sh", "-c", "echo $V999", environment=few).json["stdout"] == "x\n", "the control"


def test_a_long_name_and_a_long_path_cost_no_memory(server, ann):
    session = ann.session()
    assert spawn(ann, session, "nosuch", environment={"PATH": "/b:" * 100}).json["exit_code"] == 127
    before = peak_kb(server)
    for name, folders in (("x" * 100_000, 20_000), ("x" * 100_000, 200_000), ("x", 200_000)):
        answer = spawn(ann, session, name, environment={"PATH": "/b:" * folders})
        assert answer.status == 200 and answer.json["exit_code"] in (126, 127), answer
    assert peak_kb(server) - before < 64 << 10
    found = spawn(ann, session, "true", environment={"PATH": "/b:" * 1000 + "/usr/bin:/bin"})
    assert found.json["exit_code"] == 0, "the control"
