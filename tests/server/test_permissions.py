"""[permissions] and agent files: the same with `belljar serve` as with `belljar mcp`."""

from __future__ import annotations

import json
import signal
import subprocess
import threading

import jar as jars
import mcp_client
import pytest
import serving
from test_http_mcp import answer_in, begin, message

CODER = "---\nname: coder\npermission:\n  bash:\n    'echo *': allow\n    'touch *': ask\n  read: allow\n---\n"
READER = "---\nname: reader\npermission:\n  read: allow\n---\n"


@pytest.fixture
def agents(scene):
    folder = scene.home / "agents"
    folder.mkdir(mode=0o755)
    (folder / "coder.md").write_text(CODER)
    (folder / "reader.md").write_text(READER)
    return folder


def shell(client, session, command, **more):
    return client.post(f"/v1/sessions/{session}/shell", commands=[command], **more)


def test_the_table_of_the_config_counts_in_serve(start):
    server = start(config='[permissions]\nshell = { "*" = "deny", "echo *" = "auto" }\n')
    ann = server.client("ann")
    session = ann.session()
    assert shell(ann, session, "echo hi").json["stdout"] == "hi\n"
    assert shell(ann, session, "ls").status == 403
    headers = begin(ann)
    for command, denied in (("echo hi", False), ("ls", True)):
        call = {"name": "shell", "arguments": {"commands": [command]}}
        result = answer_in(message(ann, "tools/call", headers, 2, **call))["result"]
        assert result["isError"] == denied, result
    assert ann.python(session, "6 * 7")["result"] == "42", "of python nothing is said"


SPELLINGS = ["secret.txt", "./secret.txt", "d/../secret.txt", "secret.txt/.", ".//secret.txt", "PWD/secret.txt", "PWD/d/../secret.txt"]


@pytest.mark.parametrize("profile", ["restricted", "public-bot"])
@pytest.mark.parametrize("path", SPELLINGS)
def test_a_pattern_is_about_a_file_however_its_path_is_written(start, path, profile):
    server = start(f"--profile={profile}", config='[permissions]\nread = { "*" = "auto", "secret*" = "deny" }\n')
    ann = server.client("ann")
    session = ann.session()
    pwd = shell(ann, session, "mkdir d; echo x > secret.txt; echo x > other.txt; pwd").json["stdout"].strip()
    path = path.replace("PWD", pwd)

    def read(name: str) -> dict:
        body = json.dumps({"path": name}).encode()
        return ann("POST", f"/v1/sessions/{session}/tools/read", body, {"Content-Type": "application/json"}).json

    assert read(path)["error_type"] == "denied"
    assert not read("other.txt")["is_error"] and not read(f"{pwd}/other.txt")["is_error"], "the control"
    headers = begin(ann)
    for name, denied in (("secret.txt", True), ("other.txt", False)):
        answer = answer_in(message(ann, "resources/read", headers, 2, uri=f"session://{session}/files/{name}"))
        assert ("error" in answer) == denied, answer


def test_the_agent_of_the_operator_counts_for_every_request(start, agents):
    server = start("--agent=coder", f"--agents={agents}")
    ann = server.client("ann")
    session = ann.session()
    assert shell(ann, session, "echo hi").status == 200
    assert shell(ann, session, "ls").status == 403
    assert shell(ann, session, "echo hi", agent="reader").status == 403, "the strictest counts"
    assert shell(ann, session, "ls", agent="coder").status == 403
    assert shell(ann, session, "echo hi", agent="nobody").status == 403, "one that is not there may do nothing"


def test_sighup_reads_agents_again(start, agents):
    server = start(f"--agents={agents}")
    ann = server.client("ann")
    session = ann.session()
    assert shell(ann, session, "echo hi", agent="coder").status == 200
    (agents / "coder.md").write_text(CODER.replace("'echo *': allow", "'echo *': deny"))
    (agents / "other.md").write_text(READER.replace("reader", "other"))
    server.signal(signal.SIGHUP)
    assert serving.wait_until(lambda: shell(ann, session, "echo hi", agent="coder").status == 403)
    assert "there is no agent" not in str(shell(ann, session, "ls", agent="other").json)


def test_a_request_may_name_an_agent(start, agents):
    server = start(f"--agents={agents}")
    ann = server.client("ann")
    session = ann.session()
    assert shell(ann, session, "ls").status == 200
    assert shell(ann, session, "ls", agent="coder").status == 403
    assert shell(ann, session, "echo hi", agent="coder").status == 200
    tool = f"/v1/sessions/{session}/tools/shell"
    assert ann.post(tool, commands=["ls"], agent="coder").json["error_type"] == "denied"
    assert not ann.post(tool, commands=["ls"]).json["is_error"]
    headers = begin(ann)
    for agent, denied in ((None, False), ("coder", True)):
        call = {"name": "shell", "arguments": {"commands": ["ls"]}, "_meta": {"belljar/agent": agent} if agent else {}}
        assert answer_in(message(ann, "tools/call", headers, 2, **call))["result"]["isError"] == denied


def test_an_agent_that_is_not_there_is_no_start(start, agents):
    with pytest.raises(RuntimeError, match="there is no agent nobody"):
        start("--agent=nobody", f"--agents={agents}")


def test_a_client_of_mcp_cannot_leave_its_agent(scene, agents):
    with mcp_client.Client(scene, "--agent=reader", f"--agents={agents}") as client:
        number = client.send_tool("shell", {"belljar/agent": "coder"}, commands=["echo hi"])
        assert client.wait(number)["result"]["structuredContent"]["error_type"] == "denied"



def test_the_persons_own_agent_is_not_one_of_the_workspace(scene):
    """A guest can write there, and would say at the next start what it may do."""
    own = scene.home / ".config/belljar/agents"
    workspace = scene.home / "workspace"
    for folder, said in ((own, "deny"), (workspace / "agents", "allow")):
        folder.mkdir(parents=True, mode=0o755)
        (folder / "careful.md").write_text(f"---\nname: careful\npermission:\n  read: allow\n  shell: {said}\n---\n")
    (workspace / "agents/other.md").write_text("---\nname: other\npermission:\n  shell: allow\n---\n")
    for agent, denied in (("careful", True), ("other", False)):
        with mcp_client.Client(scene, f"--workspace={workspace}", f"--agent={agent}") as client:
            number = client.send_tool("shell", commands=["echo hi"])
            assert client.wait(number)["result"]["isError"] == denied, agent


def test_who_may_not_use_the_shell_starts_none(start):
    server = start(config='[permissions]\nshell = { "*" = "deny", "echo *" = "auto" }\n')
    ann = server.client("ann")
    tool = f"/v1/sessions/{ann.session()}/tools/process_start"
    assert ann.post(tool, arguments=["sh", "-c", "echo hi"]).json["error_type"] == "denied"
    assert not ann.post(tool, arguments=["echo", "hi"]).json["is_error"], "the control"


def test_the_terminal_finds_what_waits_in_serve(start, scene):
    server = start("--permission=ask")
    ann = server.client("ann")
    session = ann.session()
    answers = []
    asks = threading.Thread(target=lambda: answers.append(shell(ann, session, "echo hi")))
    asks.start()
    environment = {**jars.Outside(scene).environment(), "HOME": str(scene.home), "XDG_RUNTIME_DIR": str(server.folder)}

    def approvals(*words) -> str:
        command = scene.identity.command([jars.binary(), "approvals", *words])
        return subprocess.run(command, cwd=scene.home, env=environment, capture_output=True, text=True).stdout

    assert serving.wait_until(lambda: ann.get("/v1/approvals").json["approvals"])
    (waiting,) = ann.get("/v1/approvals").json["approvals"]
    assert waiting["approval_id"] in approvals("list")
    approvals("approve", waiting["approval_id"])
    asks.join()
    assert answers[0].json["stdout"] == "hi\n"
