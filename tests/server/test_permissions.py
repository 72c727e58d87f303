"""[permissions] and agent files: the same with `belljar serve` as with `belljar mcp`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading

import jar as jars
import mcp_client
import pytest
import serving
from test_cli_approvals import Call
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


SPELLINGS = ["secret.txt", "./secret.txt", "d/../secret.txt", "secret.txt/.", ".//secret.txt", "PWD/secret.txt", "PWD/d/../secret.txt",
             "../BASE/secret.txt", "..//BASE/./secret.txt", "PWD/../BASE/secret.txt", "~/FROM_HOME/secret.txt"]  # fmt: skip


@pytest.mark.parametrize("profile", ["restricted", "public-bot"])
@pytest.mark.parametrize("path", SPELLINGS)
def test_a_pattern_is_about_a_file_however_its_path_is_written(start, path, profile):
    server = start(f"--profile={profile}", config='[permissions]\nread = { "*" = "auto", "secret*" = "deny" }\n')
    ann = server.client("ann")
    session = ann.session()
    said = shell(ann, session, "mkdir d; echo x > secret.txt; echo x > other.txt; pwd; echo ~").json["stdout"]
    pwd, home = said.split()
    path = path.replace("PWD", pwd).replace("BASE", os.path.basename(pwd))
    path = path.replace("FROM_HOME", os.path.relpath(pwd, home))

    def read(name: str) -> dict:
        body = json.dumps({"path": name}).encode()
        return ann("POST", f"/v1/sessions/{session}/tools/read", body, {"Content-Type": "application/json"}).json

    assert read(path)["error_type"] == "denied"
    assert read(path.replace("secret", "other"))["error_type"] != "denied"
    assert not read("other.txt")["is_error"] and not read(f"{pwd}/other.txt")["is_error"], "the control"
    headers = begin(ann)
    for name, denied in (("secret.txt", True), ("other.txt", False)):
        answer = answer_in(message(ann, "resources/read", headers, 2, uri=f"session://{session}/files/{name}"))
        assert ("error" in answer) == denied, answer


@pytest.mark.parametrize("rule", ["~/secret*", "HOME/secret*"])
def test_a_pattern_is_about_a_file_of_the_home_by_either_name(start, rule):
    rule = rule.replace("HOME", "/home/sandbox")
    config = f'[permissions]\nread = {{ "*" = "auto", "{rule}" = "deny" }}\n'
    ann = start(profile="public-bot", config=config).client("ann")
    session = ann.session()
    shell(ann, session, "echo x > ~/secret.txt; echo x > ~/other.txt")

    def read(name: str) -> dict:
        body = json.dumps({"path": name}).encode()
        return ann("POST", f"/v1/sessions/{session}/tools/read", body, {"Content-Type": "application/json"}).json

    for folder in ("~", "/home/sandbox", "~/../sandbox"):
        assert read(f"{folder}/secret.txt")["error_type"] == "denied", folder
        assert read(f"{folder}/other.txt")["error_type"] != "denied", folder


def test_a_pattern_is_about_where_a_glob_begins(start):
    ann = start(config='[permissions]\nglob = { "*" = "auto", "/usr/share*" = "deny" }\n').client("ann")
    session = ann.session()

    def glob(**arguments) -> str:
        body = json.dumps(arguments).encode()
        answer = ann("POST", f"/v1/sessions/{session}/tools/glob", body, {"Content-Type": "application/json"})
        return answer.json["error_type"]

    assert glob(pattern="*", path="/usr/share") == "denied"
    assert glob(pattern="/usr/share/*") == glob(pattern="/usr/lib/../share/*", path="/usr/lib") == "denied"
    assert glob(pattern="*", path="/usr/lib") != "denied" and glob(pattern="/usr/lib/*") != "denied", "the control"


def asked(client, call, **decision) -> bool:
    """Whether a person was asked about it, who then says yes."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(call()))
    thread.start()

    def waiting() -> list:
        return client.get("/v1/approvals").json["approvals"]

    assert serving.wait_until(lambda: answers or waiting())
    pending = waiting()
    for one in pending:
        said = client.post(f"/v1/approvals/{one['approval_id']}", decision="approve", **decision)
        assert said.status == 200, said
    thread.join()
    return bool(pending)


def starting(client, session: str, *words: str, way: str = "tools/process_start", **fields):
    return lambda: client.post(f"/v1/sessions/{session}/{way}", arguments=list(words), **fields)


def test_the_same_program_has_the_same_words_folder_and_variables(start):
    ann = start(config='[permissions]\nprocess_start = "ask"\n').client("ann")
    session = ann.session()
    assert asked(ann, starting(ann, session, "echo", "a b"), scope="same")
    assert not asked(ann, starting(ann, session, "echo", "a b")), "the control: it is remembered"
    assert not asked(ann, starting(ann, session, "echo", "a b", way="spawn"))
    for way in ("tools/process_start", "spawn"):
        assert asked(ann, starting(ann, session, "echo", "a", "b", way=way))
        assert asked(ann, starting(ann, session, "echo", "a b", way=way, environment={"PATH": "/workspace"}))
        assert asked(ann, starting(ann, session, "echo", "a b", way=way, folder="/"))


def test_a_pattern_of_programs_covers_none_with_a_folder_or_variables(start):
    ann = start(config='[permissions]\nprocess_start = "ask"\n').client("ann")
    session = ann.session()
    assert asked(ann, starting(ann, session, "echo", "a"), scope="pattern", pattern="echo *")
    assert not asked(ann, starting(ann, session, "echo", "b")), "the control: it covers that"
    assert asked(ann, starting(ann, session, "echo", "b", environment={"LD_PRELOAD": "x.so"}))
    assert asked(ann, starting(ann, session, "echo", "b", folder="/"))


def test_a_pattern_of_the_operator_allows_no_program_with_variables(start):
    ann = start(config='[permissions]\nprocess_start = { "*" = "ask", "echo *" = "auto" }\n').client("ann")
    session = ann.session()
    assert not asked(ann, starting(ann, session, "echo", "a")), "the control"
    assert asked(ann, starting(ann, session, "echo", "a", environment={"PATH": "/workspace"}))


def test_a_decision_has_a_length(start):
    ann = start("--permission=ask").client("ann")
    call = Call(ann, ann.session(), "echo hi")
    address = f"/v1/approvals/{call.approval['approval_id']}"
    for more in ({"scope": "pattern", "pattern": "echo *" + "*" * 4096}, {"message": "m" * (16 << 10) + "m"}):
        refused = ann.post(address, decision="approve", **more)
        assert refused.status == 400 and "longer" in refused.error["message"], refused
    assert ann.post(address, decision="approve", scope="pattern", pattern="echo *", message="m").status == 200
    assert call.wait().json["stdout"] == "hi\n"


@pytest.mark.parametrize("way", ["rest", "mcp"])
def test_what_was_approved_is_forgotten_when_an_idle_session_ends(start, way):
    ann = start(config='[permissions]\nshell = "ask"\n', session='idle = "3s"\nreap_every = "100ms"').client("ann")
    session = ann.session()

    def call():
        if way == "rest":
            return shell(ann, session, "true")
        arguments = {"commands": ["true"], "session": session}
        return message(ann, "tools/call", begin(ann), 2, name="shell", arguments=arguments)

    assert asked(ann, call, scope="tool")
    assert not asked(ann, call), "the control: until the session ends"
    assert serving.wait_until(lambda: "belljar_sessions 0" in ann.get("/metrics").body.decode())
    assert asked(ann, call)


def test_an_approval_of_the_stateless_era_is_for_that_session(start):
    ann = start("--permission=ask").client("ann")
    known = {"protocolVersion": "2026-07-28", "clientCapabilities": {"elicitation": {}}}
    meta = {f"io.modelcontextprotocol/{name}": value for name, value in known.items()}
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "python"}

    def call(**more) -> dict:
        arguments = {"code": "6 * 7", "session": "desk"}
        return answer_in(message(ann, "tools/call", headers, 1, name="python", arguments=arguments, _meta=meta, **more))

    def question() -> dict:
        result = call()["result"]
        (key,) = result["inputRequests"]
        yes = {"action": "accept", "content": {"decision": "once"}}
        return {"requestState": result["requestState"], "inputResponses": {key: yes}}

    ann.session(id="desk")
    before = question()
    assert ann.delete("/v1/sessions/desk").status in (200, 204)
    ann.session(id="desk")
    assert call(**before)["error"]["code"] == -32602
    assert call(**question())["result"]["structuredContent"]["result"] == "42", "the control"


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


def test_an_agent_that_may_not_use_the_shell_starts_none(start, agents):
    for name, rule in (("quiet", "  bash: deny\n"), ("loud", "")):
        (agents / f"{name}.md").write_text(f"---\nname: {name}\npermission:\n  '*': allow\n{rule}---\n")
    ann = start(f"--agents={agents}").client("ann")
    session = ann.session()
    for agent, denied in (("quiet", True), ("loud", False)):
        started = ann.post(f"/v1/sessions/{session}/tools/process_start", arguments=["true"], agent=agent).json
        assert (started["error_type"] == "denied") == denied, started
        spawned = ann.post(f"/v1/sessions/{session}/spawn", arguments=["true"], agent=agent)
        assert spawned.status == (403 if denied else 200), spawned


def test_an_agent_counts_for_resources_and_they_are_in_the_audit(start, agents, scene):
    (agents / "blind.md").write_text("---\nname: blind\npermission:\n  shell: allow\n---\n")
    server = start(f"--agents={agents}", audit=str(scene.home / "trail.jsonl"))
    ann = server.client("ann")
    session = ann.session()
    assert ann("PUT", f"/v1/sessions/{session}/files/f", b"x\n").status == 201
    headers = begin(ann)
    expected = []
    for agent, denied in ((None, False), ("reader", False), ("blind", True), ("nobody", True)):
        named = {"uri": f"session://{session}/files/f", "_meta": {"belljar/agent": agent} if agent else {}}
        answer = answer_in(message(ann, "resources/read", headers, 2, **named))
        assert ("error" in answer) == denied, (agent, answer)
        expected.append((agent, "denied" if denied else "success"))
    lines = map(json.loads, (scene.home / "trail.ann.jsonl").read_text().splitlines())
    calls = [each for each in lines if each["event"] == "call" and each["tool"] == "read"]
    assert [(each.get("agent"), each["outcome"]) for each in calls] == expected
    assert all(each["arguments"] == {"path": "f"} and each["session"] == session for each in calls), calls


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
