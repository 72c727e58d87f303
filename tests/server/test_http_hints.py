"""Every refusal says what to do next: over HTTP, and where `belljar serve` does not start."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading

import pytest
import serving
from test_http_mcp import answer_in, begin
from test_http_mcp import message as message_to


def refusal(answer: serving.Answer, status: int) -> tuple[str, str]:
    assert answer.status == status, answer
    error = answer.error  # which looks at the hint, too
    return error["message"], error["hint"]


# ---------------------------------------------------------------- requests


def test_a_wrong_token_is_told_where_tokens_are(server):
    message, hint = refusal(serving.Client(server, "wrong-token-0123456789").get("/v1/sessions"), 401)
    assert message == "this token is not known" and "belljar serve" in hint and "SIGHUP" in hint
    message, hint = refusal(server.client(None).get("/v1/sessions"), 401)
    assert "Authorization: Bearer" in hint


def test_a_wrong_method_is_told_the_right_ones(server, ann):
    answer = ann("PATCH", "/v1/sessions")
    message, hint = refusal(answer, 405)
    assert message == "PATCH is not possible here" and hint.startswith("use GET, POST;")
    assert answer.headers["Allow"] == "GET, POST"


def test_a_wrong_content_type_is_told_the_right_one(server, ann):
    answer = ann("POST", "/v1/sessions", b"{}", {"Content-Type": "text/plain"})
    assert "Content-Type: application/json" in refusal(answer, 415)[1]


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b"{", "line 1, column 2"),
        (b'{"id": }', "line 1, column 8"),
        (b'{\n  "id": "a",\n  oops\n}', "line 3, column 3"),
        (b"{} {}", "line 1, column 4"),
        (b'{"id": "\xff"}', "line 1, column 9"),
    ],
)
def test_bad_json_is_told_where(server, ann, body, where):
    message, hint = refusal(ann("POST", "/v1/sessions", body, {"Content-Type": "application/json"}), 400)
    assert "is no JSON" in message and where in message, message


def test_unknown_fields_keys_profiles_and_tools_are_told_what_was_meant(server, ann):
    assert refusal(ann.post("/v1/sessions", profil="x"), 400) == (
        "profil: there is no such field", "did you mean profile?",
    )  # fmt: skip
    assert "there are id, policy, profile, shared, skills" in refusal(ann.post("/v1/sessions", zzzzzzzz=1), 400)[1]
    message, hint = refusal(ann.post("/v1/sessions", profile="restrictd"), 400)
    assert message == "there is no profile restrictd" and hint.startswith("did you mean restricted? there are open,")
    assert refusal(ann.post("/v1/sessions", policy={"netwrok": "none"}), 400) == (
        "policy: there is no key netwrok", "did you mean network?",
    )  # fmt: skip
    message, hint = refusal(ann.post("/v1/sessions", policy={"workdir": "/"}), 400)
    assert message == "policy: workdir cannot be asked for here" and "network" in hint
    session = ann.session()
    message, hint = refusal(ann.post(f"/v1/sessions/{session}/tools/pyton", code="1"), 404)
    assert hint.startswith("did you mean python?")
    wrong = json.dumps({"path": "x", "ofset": 1}).encode()
    read = f"/v1/sessions/{session}/tools/read"
    answer = ann("POST", read, wrong, {"Content-Type": "application/json"}).json
    assert answer["error_type"] == "invalid_arguments" and "did you mean offset?" in answer["text"]
    message, hint = refusal(ann.post(f"/v1/sessions/{session}/python", cod="1"), 400)
    assert message == "code: is missing", "what is missing is said first"
    assert "did you mean timeout_ms?" in refusal(ann.post(f"/v1/sessions/{session}/python", code="1", timeout=1), 400)[1]


def test_what_is_not_there_is_told_where_the_list_is(server, ann, bob):
    assert "GET /v1/sessions" in refusal(ann.get("/v1/sessions/nobodys"), 404)[1]
    assert "GET /v1/approvals" in refusal(ann.get("/v1/approvals/a_1"), 404)[1]
    assert "GET /v1/skills" in refusal(ann.get("/v1/skills/none"), 404)[1]
    assert "GET /v1/skills" in refusal(ann.post("/v1/sessions", skills=["none"]), 404)[1]
    assert "/openapi.json" in refusal(ann.get("/v2"), 404)[1]
    ann.session(id="taken")
    assert "choose another id" in refusal(ann.post("/v1/sessions", id="taken"), 409)[1]


def test_an_agent_that_is_not_there_is_said(server, ann):
    message, hint = refusal(ann.post("/v1/execute/python", code="1", agent="nobody"), 403)
    assert message == "there is no agent nobody, so it may do nothing; this server has none"


def test_when_all_connections_are_busy_it_is_said_why(start):
    server = start(config="max_connections = 1")
    ann = server.client("ann")
    with ann.stream("GET", "/v1/events"):
        answer = server.raw(b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 503"), answer
    error = json.loads(answer.split(b"\r\n\r\n", 1)[1])["error"]
    assert error["type"] == "unavailable" and "max_connections" in error["hint"]


# ---------------------------------------------------------------- its end


def test_sigterm_denies_what_waits_for_approval_and_ends(start, scene):
    """It would wait for the request, which waits for a person, who cannot come any more."""
    trail = scene.home / "audit.jsonl"
    server = start("--permission=ask", f"--audit={trail}", config='drain_timeout = "10m"')
    ann = server.client("ann")
    session = ann.session()
    answers = []
    asks = threading.Thread(target=lambda: answers.append(ann.post(f"/v1/sessions/{session}/python", code="1")))
    asks.start()
    with ann.stream("POST", f"/v1/sessions/{session}/shell", commands=["true"]) as streamed:
        streamed.until("agentic_tool_approval_required")
        assert serving.wait_until(lambda: len(ann.get("/v1/approvals").json["approvals"]) == 2)
        server.signal(signal.SIGTERM)
        error = streamed.until("error")
    assert error["type"] == "not_approved" and error["hint"]
    asks.join()
    message, _ = refusal(answers[0], 403)
    assert message == "nobody has approved this call: the server is stopping"
    assert server.wait() == 0
    lines = trail.with_name("audit.ann.jsonl").read_text().splitlines()
    decided = [line for line in map(json.loads, lines) if line["event"] == "decision"]
    assert [(line["decision"], line["by"]) for line in decided] == [("denied", "shutdown")] * 2


def test_how_long_a_call_waits_for_approval_can_be_set(start):
    server = start("--permission=ask", config='approval_timeout = "1s"')
    ann = server.client("ann")
    message, hint = refusal(ann.post("/v1/execute/python", code="1"), 403)
    assert message == "nobody has approved this call: its time was over" and "/v1/approvals" in hint
    # A client that hears nothing meanwhile is told in the end what a person could have done.
    answer = answer_in(message_to(ann, "tools/call", begin(ann), 2, name="python", arguments={"code": "1"}))
    text = answer["result"]["content"][0]["text"]
    assert text.startswith(message + "; `belljar approvals` or POST /v1/approvals/{id} decides"), text


# ---------------------------------------------------------------- its beginning


def why_not(start, *flags, **how) -> str:
    with pytest.raises(RuntimeError) as failure:
        start(*flags, **how)
    text = str(failure.value)
    assert "ended with 125" in text and "hint: " in text, text
    return text


def test_a_port_in_use_is_told_how_to_get_another(start, server):
    text = why_not(start, f"--listen=127.0.0.1:{server.port}")
    assert "Address already in use" in text and "--listen=127.0.0.1:0 takes one that is free" in text


def test_an_address_that_is_none_is_told_what_one_is(start):
    assert "127.0.0.1:8077" in why_not(start, "--listen=here")
    assert "this computer has no such address" in why_not(start, "--listen=192.0.2.1:0", "--allow-remote")


def test_a_token_file_that_cannot_be_used_is_told_why(start, server):
    server.token_file.chmod(0o640)
    assert f"chmod 600 {server.token_file}" in why_not(start, f"--token-file={server.token_file}")
    server.token_file.chmod(0o600)
    server.token_file.write_text("# none\n")
    assert "NAME SCOPE[,SCOPE] TOKEN" in why_not(start, f"--token-file={server.token_file}")
    assert "--token-file" in why_not(start, f"--token-file={server.folder}/nowhere/tokens")


def test_a_token_file_that_cannot_be_read_is_told_whose_it_must_be(start, server):
    if server.identity.name == "root":
        return  # who reads everything
    os.chown(server.token_file, 0, 0)
    text = why_not(start, f"--token-file={server.token_file}")
    assert "Permission denied" in text and "chown" in text


def test_an_address_for_others_is_told_what_it_takes(start):
    text = why_not(start, "--listen=0.0.0.0:0")
    assert "others can reach" in text and "--allow-remote" in text and "TLS" in text


def test_a_folder_that_cannot_be_meant_is_told_at_the_start(start, server):
    assert "--workdir: the folder is /" in why_not(start, "--workdir=/")
    assert "is the system's" in why_not(start, "--workdir=/usr/lib")
    assert "make it first" in why_not(start, f"--workdir={server.folder}/nowhere")
    text = why_not(start, session=f'workdir = "{server.scene.home}"')
    assert "workdir in [session]: the folder" in text and "is your home" in text, text


def test_an_unknown_profile_is_told_which_there_are(start):
    text = why_not(start, profile="restrictd")
    assert 'there is no "restrictd"' in text and "did you mean restricted?" in text


def test_an_unknown_agent_of_the_operators_is_told_which_there_are(start, scene):
    scene.file(scene.home / "agents/coder.md", "---\npermission:\n  bash: allow\n---\n")
    scene.file(scene.home / "agents/broken.md", "nothing")
    assert "did you mean coder?" in why_not(start, "--agent=coders")
    server = start("--agent=coder")
    assert f"{scene.home}/agents/broken.md: it does not begin with front matter" in server.errors()


def test_a_folder_that_is_in_use_is_told_how_to_get_another(start, server):
    text = why_not(start, f"--listen=unix:{server.socket_path}")
    assert "another server listens" in text and "stop it" in text


def test_sockets_of_servers_that_were_killed_are_swept(start, server, scene):
    folder = server.folder / "belljar"
    (dead,) = folder.glob("approvals-*.sock")
    keys = set(folder.glob("key-*"))
    assert len(keys) == 2, "of the two sockets"
    server.kill()
    again = start(environment={"XDG_RUNTIME_DIR": str(server.folder)})
    assert not dead.exists() and (folder / f"approvals-{again.process.pid}.sock").exists()
    assert len(list(folder.glob("key-*"))) == 2, "those of the dead one are gone"
    assert serving.owner_key(folder / f"approvals-{again.process.pid}.sock", folder)
    with socket.socket(socket.AF_UNIX) as probe:
        probe.connect(str(folder / f"approvals-{again.process.pid}.sock"))


def test_the_folder_of_the_sockets_goes_with_the_last_server(start, server):
    folder = server.folder / "belljar"
    second = start(environment={"XDG_RUNTIME_DIR": str(server.folder)})
    assert len(list(folder.glob("approvals-*.sock"))) == 2
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert [path.name for path in folder.glob("*.sock")] == [f"approvals-{second.process.pid}.sock"]
    assert len(list(folder.glob("key-*"))) == 2, "those of the second"
    second.signal(signal.SIGTERM)
    assert second.wait() == 0
    assert not folder.exists()
