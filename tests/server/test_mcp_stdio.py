"""`belljar mcp`, spoken to by hand: what must hold whatever client there is."""

from __future__ import annotations

import base64
import glob
import json
import os
import pathlib
import signal
import subprocess
import time

import mcp_client
import pytest

STATELESS = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
LOOP = "print('begun', flush=True)\nwhile True: pass"


@pytest.fixture
def client(scene):
    with mcp_client.Client(scene) as made:
        yield made


def leftovers(pid: int) -> list[str]:
    return glob.glob(f"/tmp/belljar-{pid}-*")


def children(pid: int) -> list[str]:
    """Of whichever of its threads."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return [child for task in tasks for child in (task / "children").read_text().split()]


def wait_for_no(thing, patience: float = 10):
    end = time.monotonic() + patience
    while thing():
        assert time.monotonic() < end, thing()
        time.sleep(0.02)


# ---------------------------------------------------------------- the protocol


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_initialize_agrees_on_the_version_asked_for(scene, version):
    with mcp_client.Client(scene, version=version) as client:
        assert client.hello["protocolVersion"] == version
        assert client.hello["serverInfo"]["name"] == "belljar"
        assert {"tools", "resources", "prompts", "completions", "logging"} <= set(client.hello["capabilities"])


def test_the_stateless_era_needs_no_initialize(scene):
    with mcp_client.Client(scene, initialize=False) as client:
        found = client.call("server/discover", _meta=STATELESS)["result"]
        assert "2026-07-28" in found["supportedVersions"] and found["resultType"] == "complete"
        first = client.call("tools/call", name="python", arguments={"code": "x = 5"}, _meta=STATELESS)["result"]
        session = first["structuredContent"]["session"]
        second = client.call(
            "tools/call", name="python", arguments={"code": "x + 1", "session": session}, _meta=STATELESS
        )["result"]
        assert second["structuredContent"]["result"] == "6"
        # The connection is one all the same.
        again = client.call("tools/call", name="python", arguments={"code": "x + 2"}, _meta=STATELESS)["result"]
        assert again["structuredContent"]["result"] == "7" and again["structuredContent"]["session"] == session


def test_broken_lines_are_answered_and_harm_nobody(client):
    client.send_text("{\n[]\n\n  \n" + "[" * 100_000 + "\n\xff\xfe\n" + '{"jsonrpc":"2.0","id":{},"method":"ping"}\n')
    assert client.call("ping")["result"] == {}
    codes = [message["error"]["code"] for message in client.messages if "error" in message]
    assert set(codes) == {-32700, -32600}


def test_a_line_that_is_too_long_is_refused_and_the_next_is_read(client):
    client.send_text(b'{"jsonrpc": "' + b"x" * (49 << 20) + b'"}\n')
    assert client.call("ping")["result"] == {}
    assert any("larger" in m.get("error", {}).get("message", "") for m in client.messages)


def test_unknown_methods_tools_and_arguments_are_told_apart(client):
    assert client.call("no/such")["error"]["code"] == -32601
    assert client.call("tools/call", name="none")["error"]["code"] == -32602
    assert client.call("tools/call", name="python", arguments=[])["error"]["code"] == -32602
    assert client.tool("python", code=5)["structuredContent"]["error_type"] == "invalid_arguments"
    assert client.call("resources/read", uri="session://x/log")["error"]["code"] == -32602
    assert client.call("tools/list", cursor="x")["error"]["code"] == -32602


# ---------------------------------------------------------------- tools


def test_state_lasts_and_python_and_shell_see_the_same_files(client):
    client.tool("python", code="open('a.txt', 'w').write('from python'); y = 1")
    assert client.text("shell", commands=["cat a.txt"]).strip() == "from python"
    assert client.tool("python", code="y + 1")["structuredContent"]["result"] == "2"


def test_a_plot_comes_back_as_an_image_and_files_as_links(client):
    result = client.tool(
        "python", code="import matplotlib.pyplot as p; p.plot([1, 2]); p.show(); open('t.csv', 'w').write('a,b')"
    )
    images = [part for part in result["content"] if part["type"] == "image"]
    assert base64.b64decode(images[0]["data"]).startswith(b"\x89PNG")
    links = {part["name"]: part for part in result["content"] if part["type"] == "resource_link"}
    read = client.call("resources/read", uri=links["t.csv"]["uri"])["result"]["contents"][0]
    assert read["text"] == "a,b" and read["mimeType"] == "text/csv"


def test_file_tools_see_what_the_shell_sees(client):
    client.tool("write", path="src/a.py", content="one = 1\ntwo = 2\n")
    assert client.tool("edit", path="src/a.py", old_string="two", new_string="zwei")["structuredContent"]["line"] == 2
    shown = client.tool("shell", commands=["cat src/a.py"])["structuredContent"]
    assert shown["stdout"] == "one = 1\nzwei = 2\n"
    assert "2: zwei = 2" in client.text("read", path="src/a.py")
    found = client.tool("grep", pattern="zw.i")["structuredContent"]["matches"]
    assert [(one["line"], one["text"]) for one in found] == [(2, "zwei = 2")]
    assert len(client.tool("glob", pattern="**/*.py")["structuredContent"]["paths"]) == 1
    assert client.tool("read", path="/etc/shadow")["isError"]
    assert client.tool("read", path="none")["structuredContent"]["error_type"] == "not_found"
    client.tool("shell", commands=["ln -s /etc/passwd out; mkfifo fifo"])
    assert client.tool("read", path="fifo")["structuredContent"]["error_type"] == "not_a_file"
    assert client.tool("write", path="out", content="x")["isError"]


def test_file_tools_and_resources_keep_to_hide_and_protect(scene):
    work = os.path.join(scene.home, "work")
    os.mkdir(work)
    pathlib.Path(work, ".env").write_text("SECRET=1")
    pathlib.Path(work, "kept").write_text("old")
    pathlib.Path(work, "plain").write_text("plain")
    for name in (work, *(os.path.join(work, one) for one in (".env", "kept", "plain"))):
        os.chown(name, scene.identity.uid, scene.identity.gid)
    with mcp_client.Client(scene, f"--workspace={work}", f"--hide={work}/.env", f"--protect={work}/kept") as client:
        for _ in range(2):  # before the jar runs and while it does
            assert "plain" in client.text("read", path="plain")
            assert client.tool("read", path=".env")["isError"]
            assert client.tool("write", path="kept", content="new")["isError"]
            assert not client.tool("grep", pattern="SECRET")["structuredContent"]["matches"]
            session = client.tool("shell", commands=["true"])["structuredContent"]["session"]
            assert "error" in client.call("resources/read", uri=f"session://{session}/files/.env")
            assert "result" in client.call("resources/read", uri=f"session://{session}/files/plain")
    assert pathlib.Path(work, "kept").read_text() == "old"


def test_errors_of_the_guests_are_answers(client):
    result = client.tool("python", code="1/0")
    assert result["isError"] and "ZeroDivisionError" in result["content"][0]["text"]
    result = client.tool("shell", commands=["exit 3"])
    assert result["isError"] and result["structuredContent"]["exit_code"] == 3


def test_sessions_have_names_and_do_not_see_one_another(client):
    client.tool("python", code="who = 'own'")
    client.tool("python", code="who = 'other'", session="other")
    assert "own" in client.text("python", code="who")
    assert "other" in client.text("python", code="who", session="other")
    ids = [one["session"] for one in client.tool("session_list")["structuredContent"]["sessions"]]
    assert "other" in ids and len(ids) == 2
    client.tool("session_close", session="other")
    assert client.tool("python", code="who", session="other")["isError"]


def test_output_comes_as_progress_while_it_runs(client):
    number = client.send_tool("python", {"progressToken": "p"}, code="print('early', flush=True)\nimport time\ntime.sleep(3)")
    client.wait_for(lambda m: m.get("method") == "notifications/progress" and "early" in m["params"]["message"])
    assert not any(message.get("id") == number for message in client.messages)
    client.wait(number)


def test_processes_run_beside_the_calls(client):
    started = client.tool("process_start", arguments=["sh", "-c", "read line; echo got $line; read line"])
    process = started["structuredContent"]["process"]
    # An answer has what came since the last one, this one too.
    state = client.tool("process_write", process=process, text="hello\n")["structuredContent"]
    deadline = time.monotonic() + 20
    out = state["stdout"]
    while "got hello" not in out and time.monotonic() < deadline:
        state = client.tool("process_poll", process=process, wait_ms=100)["structuredContent"]
        out += state["stdout"]
    assert "got hello" in out and state["running"]
    client.tool("process_signal", process=process, signal="KILL")
    state = client.tool("process_poll", process=process, wait_ms=20_000)["structuredContent"]
    assert not state["running"] and state["exit_code"] == 137
    assert client.tool("process_poll", process="p99")["structuredContent"]["error_type"] == "not_found"


def test_a_poll_waits_for_output_and_not_for_the_end(client):
    started = client.tool("process_start", arguments=["sh", "-c", "read line; sleep 1; echo got $line; sleep 1000"])
    process = started["structuredContent"]["process"]  # answers later, or process_write's answer might have it
    first = client.send_tool("process_poll", process=process, wait_ms=20_000)
    second = client.tool("process_poll", process=process, wait_ms=20_000)["structuredContent"]
    assert second["running"] and not second["stdout"], "one waits, another does not"
    began = time.monotonic()
    client.tool("process_write", process=process, text="hello\n")
    state = client.wait(first)["result"]["structuredContent"]
    assert state["stdout"] == "got hello\n" and state["running"]
    assert time.monotonic() - began < 15
    client.tool("process_signal", process=process, signal="KILL")
    state = client.tool("process_poll", process=process, wait_ms=20_000)["structuredContent"]
    assert not state["running"] and state["exit_code"] == 137


def test_a_program_that_has_closed_its_input_ends_nothing_but_that(client):
    client.tool("python", code="kept = 1")
    started = client.tool("process_start", arguments=["sh", "-c", "exec <&-; echo closed; exec sleep 1000"])
    process, said = started["structuredContent"]["process"], started["structuredContent"]["stdout"]
    while "closed" not in said:
        state = client.tool("process_poll", process=process, wait_ms=20_000)["structuredContent"]
        assert state["running"] and state["stdout"], state
        said += state["stdout"]
    for _ in range(2):  # the second comes after the pipe was found broken
        assert client.tool("process_write", process=process, text="x\n")["structuredContent"]["running"]
    assert client.tool("python", code="kept")["structuredContent"]["result"] == "1"
    assert client.tool("process_poll", process=process)["structuredContent"]["running"]


# ---------------------------------------------------------------- cancellation


@pytest.mark.parametrize(
    "tool, arguments", [("python", {"code": LOOP}), ("shell", {"commands": ["echo begun; while :; do :; done"]})]
)
def test_a_cancelled_call_is_interrupted_and_state_is_kept(client, tool, arguments):
    client.tool("python", code="kept = 1")
    number = client.send_tool(tool, {"progressToken": 1}, **arguments)
    client.wait_for(lambda m: m.get("method") == "notifications/progress" and "begun" in m["params"].get("message", ""))
    began = time.monotonic()
    client.notify("notifications/cancelled", requestId=number)
    assert "again" in client.text(tool, **({"code": "print('again')"} if tool == "python" else {"commands": ["echo again"]}))
    assert time.monotonic() - began < 10
    assert client.tool("python", code="kept")["structuredContent"]["result"] == "1"
    assert not any(message.get("id") == number for message in client.messages), "a cancelled request is not answered"


def test_cancelling_one_that_waits_leaves_the_one_that_runs(client):
    running = client.send_tool("python", {"progressToken": 1}, code="print('begun', flush=True)\nimport time\ntime.sleep(2)\n'done'")
    client.wait_for(lambda m: m.get("method") == "notifications/progress")
    waiting = client.send_tool("python", code="never = 1")
    client.notify("notifications/cancelled", requestId=waiting)
    assert client.wait(running)["result"]["structuredContent"]["result"] == "'done'"
    assert client.tool("python", code="never")["isError"]


# ---------------------------------------------------------------- approvals


def test_ask_goes_to_the_clients_person(scene):
    with mcp_client.Client(scene, "--permission=ask", capabilities={"elicitation": {}}) as client:
        number = client.send_tool("python", code="6 * 7")
        question = client.requests.get(timeout=mcp_client.PATIENCE)
        assert question["method"] == "elicitation/create" and "6 * 7" in question["params"]["message"]
        client.answer(question, {"action": "accept", "content": {"decision": "once"}})
        assert client.wait(number)["result"]["structuredContent"]["result"] == "42"
        number = client.send_tool("python", code="6 * 8")
        client.answer(client.requests.get(timeout=mcp_client.PATIENCE), {"action": "decline"})
        assert client.wait(number)["result"]["structuredContent"]["error_type"] == "not_approved"
        number = client.send_tool("python", code="6 * 9")
        client.answer(
            client.requests.get(timeout=mcp_client.PATIENCE), {"action": "accept", "content": {"decision": "tool"}}
        )
        client.wait(number)
        assert client.tool("python", code="'no more questions'")["structuredContent"]["result"]
        number = client.send_tool("shell", commands=["true"])
        assert client.requests.get(timeout=mcp_client.PATIENCE), "another tool is asked about"
        client.notify("notifications/cancelled", requestId=number)
        decisions = [line["decision"] for line in client.trail() if line["event"] == "decision"]
        assert decisions == ["approved", "denied", "approved"]


def test_without_elicitation_a_terminal_decides(scene):
    with mcp_client.Client(scene, "--permission=ask") as client:
        number = client.send_tool("shell", commands=["echo yes"])
        said = client.wait_for(lambda m: m.get("method") == "notifications/message")
        assert "belljar approvals" in said["params"]["data"]
        listed = json.loads(client.belljar("approvals", "list", "--json").stdout)
        assert [one["tool"]["kind"] for one in listed] == ["shell"]
        assert set(listed[0]) >= {"approval_id", "session_id", "round", "tool", "arguments"}
        done = client.belljar("approvals", "approve", listed[0]["approval_id"], "--pattern=echo *")
        assert done.returncode == 0, done.stderr
        assert client.wait(number)["result"]["content"][0]["text"] == "yes\n"
        assert client.text("shell", commands=["echo more"]) == "more\n"
        number = client.send_tool("shell", commands=["echo x; touch y"])
        client.wait_for(lambda m: m.get("method") == "notifications/message" and m is not said)
        prompt = subprocess.Popen(
            scene.identity.command([os.environ["BELLJAR"], "approvals"]), env=client.environment, cwd=scene.home,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        prompt.stdin.write("n\n")
        prompt.stdin.flush()
        assert client.wait(number)["result"]["isError"]
        prompt.terminate()  # it waits for the next
        shown, _ = prompt.communicate(timeout=mcp_client.PATIENCE)
        assert "touch y" in shown and "[y]es [n]o [a]lways" in shown
        assert client.belljar("approvals", "approve", listed[0]["approval_id"]).returncode == 125


def test_a_guest_cannot_approve_its_own_calls(scene):
    """Not even one that sees the socket: with everything readable and writable. The same words outside are answered."""
    work = os.path.join(scene.home, "work")
    os.mkdir(work)
    os.chown(work, scene.identity.uid, scene.identity.gid)
    words = (
        f"import glob, socket\npath = glob.glob('{scene.home}/belljar/*.sock')\n"
        f"key = open(glob.glob('{scene.home}/belljar/key-*')[0]).read().strip()\n"
        "s = socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(path[0])\n"
        "s.send(b'{\"key\":\"%s\"}\\n{\"op\":\"list\"}\\n' % key.encode()); answer = s.recv(1000)\n"
    )
    with mcp_client.Client(scene, "--permission=ask", "--profile=open", f"--workspace={work}") as client:
        number = client.send_tool("python", code=words + "answer")
        client.wait_for(lambda m: m.get("method") == "notifications/message")
        outside = subprocess.run(
            scene.identity.command(["/usr/bin/python3", "-c", words + "print(answer)"]),
            cwd=scene.home, capture_output=True, text=True, timeout=mcp_client.PATIENCE,
        )  # fmt: skip
        assert '"pending"' in outside.stdout, outside
        waiting = json.loads(client.belljar("approvals", "list", "--json").stdout)[0]
        client.belljar("approvals", "approve", waiting["approval_id"])
        result = client.wait(number)["result"]["structuredContent"]
        assert "exception" in result, result
        refused = result["exception"] and result["exception"]["type"] in (
            "ConnectionResetError", "BrokenPipeError", "PermissionError", "IndexError", "FileNotFoundError"
        )  # fmt: skip
        assert refused or result["result"] == "b''", result


def test_ask_in_the_stateless_era_is_an_answer_that_asks(scene):
    meta = {**STATELESS, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    with mcp_client.Client(scene, "--permission=ask", initialize=False) as client:
        def call(code, **more):
            return client.call("tools/call", name="python", arguments={"code": code, "session": "s"}, _meta=meta, **more)

        asked = call("6 * 7")["result"]
        assert asked["resultType"] == "input_required"
        (key,) = asked["inputRequests"]
        yes = {key: {"action": "accept", "content": {"decision": "once"}}}
        state = asked["requestState"]
        assert call("7 * 7", inputResponses=yes, requestState=state)["error"]["code"] == -32602, "for another call"
        assert call("6 * 7", inputResponses=yes, requestState=state + "0")["error"]["code"] == -32602
        assert call("6 * 7", inputResponses=yes)["error"]["code"] == -32602, "a yes to no question"
        done = call("6 * 7", inputResponses=yes, requestState=state)["result"]
        assert done["structuredContent"]["result"] == "42"
        assert call("6 * 7", inputResponses=yes, requestState=state)["error"]["code"] == -32602, "it counts once"
        asked = call("8 * 8")["result"]
        no = {key: {"action": "decline"}}
        denied = call("8 * 8", inputResponses=no, requestState=asked["requestState"])["result"]
        assert denied["structuredContent"]["error_type"] == "not_approved"


def test_deny_denies_and_nothing_runs(scene):
    with mcp_client.Client(scene, "--permission=deny") as client:
        result = client.tool("python", code="print(1)")
        assert result["isError"] and result["structuredContent"]["error_type"] == "denied"
        assert client.trail()[-1]["outcome"] == "denied"


def test_an_agent_file_narrows(scene):
    folder = os.path.join(scene.home, "agents")
    os.mkdir(folder)
    pathlib.Path(folder, "coder.md").write_text("---\nname: coder\npermission:\n  bash:\n    'echo *': allow\n  webfetch: allow\n---\n")
    os.chmod(folder, 0o755)
    with mcp_client.Client(scene, "--agent=coder") as client:
        assert client.text("shell", commands=["echo hi"]) == "hi\n"
        assert client.tool("shell", commands=["ls"])["structuredContent"]["error_type"] == "denied"
        assert client.tool("shell", commands=["echo a; ls"])["structuredContent"]["error_type"] == "denied"
        assert client.tool("python", code="1")["structuredContent"]["error_type"] == "denied"


# ---------------------------------------------------------------- audit


def test_the_trail_tells_everything_but_secrets(scene):
    with mcp_client.Client(scene, "--env=MY_SETTING=hunter2hunter2") as client:
        client.tool("shell", commands=["echo password=opensesame ghp_0123456789abcdefghij hunter2hunter2"])
        client.tool("process_start", arguments=["true"], environment={"A": "quite-private"})
        text = pathlib.Path(client.audit).read_text()
        for secret in ("opensesame", "ghp_0123", "hunter2", "quite-private"):
            assert secret not in text
        lines = client.trail()
        told = [(line["event"], line["tool"], line.get("outcome")) for line in lines]
        assert told == [("began", "shell", None), ("call", "shell", "success"),
                        ("began", "process_start", None), ("call", "process_start", "success")]  # fmt: skip
        assert os.stat(client.audit).st_mode & 0o777 == 0o600


# ---------------------------------------------------------------- resources, prompts


def test_resources_prompts_and_completion(client):
    client.tool("python", code="open('data one.csv', 'w').write('1')", session="job")
    resources = client.call("resources/list")["result"]["resources"]
    uris = [one["uri"] for one in resources]
    assert "session://job/log" in uris and "session://job/files/data%20one.csv" in uris
    log = client.call("resources/read", uri="session://job/log")["result"]["contents"][0]["text"]
    assert "data one.csv" in log
    assert client.call("resources/read", uri="session://job/files/data%20one.csv")["result"]["contents"][0]["text"] == "1"
    templates = client.call("resources/templates/list")["result"]["resourceTemplates"]
    assert any("{+path}" in one["uriTemplate"] for one in templates)
    ref = {"type": "ref/resource", "uri": "session://{id}/files/{+path}"}
    values = client.call("completion/complete", ref=ref, argument={"name": "id", "value": "j"})["result"]["completion"]
    assert values["values"] == ["job"]
    values = client.call(
        "completion/complete", ref=ref, argument={"name": "path", "value": "da"}, context={"arguments": {"id": "job"}}
    )["result"]["completion"]
    assert values["values"] == ["data one.csv"]
    names = [one["name"] for one in client.call("prompts/list")["result"]["prompts"]]
    assert names == ["explore_dataset", "what_may_i_do"]
    said = client.call("prompts/get", name="what_may_i_do")["result"]["messages"][0]["content"]["text"]
    assert "memory 2048 MB" in said
    assert client.call("prompts/get", name="explore_dataset")["error"]["code"] == -32602


def test_a_subscriber_hears_of_a_file_that_changed(client):
    client.tool("python", code="open('a.txt', 'w').write('1')", session="job")
    client.call("resources/subscribe", uri="session://job/files/a.txt")
    client.tool("python", code="open('a.txt', 'w').write('22')", session="job")
    client.wait_for(lambda m: m.get("method") == "notifications/resources/updated")
    client.call("resources/unsubscribe", uri="session://job/files/a.txt")


@pytest.mark.parametrize("path", ["../../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "link", "fifo", "folder", "", "a%00b"])
def test_resources_lead_nowhere_else_and_hang_on_nothing(client, path):
    client.tool("shell", session="s", commands=["ln -sf /etc/passwd link; mkfifo fifo; mkdir folder"])
    answer = client.call("resources/read", uri=f"session://s/files/{path}")
    assert answer["error"]["code"] == -32602


# ---------------------------------------------------------------- its end


@pytest.mark.parametrize("end", ["eof", "SIGTERM", "SIGINT"])
def test_the_end_leaves_nothing(scene, end):
    client = mcp_client.Client(scene)
    client.tool("shell", commands=["sleep 1000 & echo"])
    client.send_tool("python", {"progressToken": 1}, code=LOOP)
    client.wait_for(lambda m: m.get("method") == "notifications/progress")
    pid = client.process.pid
    guests = children(pid)
    assert guests and leftovers(pid)
    if end == "eof":
        client.process.stdin.close()
    else:
        os.kill(pid, getattr(signal, end))
    client.process.wait(10 * mcp_client.jars.SLOWER)
    assert not leftovers(pid)
    wait_for_no(lambda: [guest for guest in guests if os.path.exists(f"/proc/{guest}")])
    assert not glob.glob(f"{scene.home}/belljar/*.sock")


def test_a_client_that_reads_nothing_is_ended_with(scene):
    process = subprocess.Popen(
        scene.identity.command([os.environ["BELLJAR"], "mcp", "--audit=none"]),
        cwd=scene.home, env=mcp_client.jars.Outside(scene).environment(), start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    listing = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": STATELESS}}) + "\n"
    for _ in range(200):  # far more than a pipe holds
        process.stdin.write(listing.encode())
    process.stdin.flush()
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.wait(10 * mcp_client.jars.SLOWER)
    process.stdin.close()
    process.stdout.close()
    assert not leftovers(process.pid)
