"""How `belljar mcp` begins and ends: the folder it works on, what it reads there, agents, signals, sockets."""

from __future__ import annotations

import glob
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import time

import jar as jars
import mcp_client
import pytest

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def run_mcp(scene, *flags: str, cwd=None) -> subprocess.CompletedProcess:
    """To the end of an empty input."""
    environment = {**jars.Outside(scene).environment(), "XDG_RUNTIME_DIR": str(scene.home)}
    return subprocess.run(
        scene.identity.command([os.environ["BELLJAR"], "mcp", "--audit=none", *flags]),
        cwd=cwd or scene.home, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=mcp_client.PATIENCE,
    )  # fmt: skip


def refusal(scene, *flags: str, **how) -> str:
    run = run_mcp(scene, *flags, **how)
    assert run.returncode == 125 and run.stdout == "", run
    assert "hint: " in run.stderr, run.stderr
    return run.stderr


# ---------------------------------------------------------------- the workspace


def test_a_workspace_that_is_not_there_is_said_at_once(scene):
    text = refusal(scene, "--workspace=nowhere")
    assert f"{scene.home}/nowhere" in text and "No such file or directory" in text and "make it first" in text


def test_a_file_is_no_workspace(scene):
    file = scene.file(scene.project / "notes.txt")
    assert f"{file} is no folder" in refusal(scene, f"--workspace={file}")


@pytest.mark.parametrize("folder", ["~", "..", "/", "/usr/lib"])
def test_the_home_what_holds_it_and_the_system_are_no_workspaces(scene, folder):
    text = refusal(scene, f"--workspace={folder}")
    assert re.search("is your home|holds your home|is /|is the system's", text), text
    assert "name the folder of a project" in text


def test_a_link_to_the_home_is_the_home(scene):
    link = scene.project / "link"
    link.symlink_to(scene.home)
    assert "is your home" in refusal(scene, f"--workspace={link}")


def test_who_means_the_home_can_say_so_as_the_hint_does(scene):
    hint = re.search(r"name the folder of a project; (-C .*) in its place does it anyway", refusal(scene, "--workspace=~"))
    with mcp_client.Client(scene, *shlex.split(hint[1])) as client:
        assert client.text("shell", commands=["pwd; echo x > written; cat written; rm written"]) == f"{scene.home}\nx\n"
        assert client.tool("python", code="import os; os.getcwd()")["structuredContent"]["result"] == repr(str(scene.home))


def test_what_no_call_could_work_in_is_refused_at_the_start(scene):
    assert "does it anyway" not in refusal(scene, "--workspace=/")
    assert "workdir: / is the whole file system" in refusal(scene, "-C/")


def test_the_project_file_of_the_workspace_counts(scene):
    scene.file("belljar.toml", '[sandbox]\nnetwork = "none"\n')
    with mcp_client.Client(scene, f"--workspace={scene.workdir}") as client:
        text = client.call("prompts/get", name="what_may_i_do")["result"]["messages"][0]["content"]["text"]
        assert "none" in text, text
        plan = client.tool("python", code="import socket\nsocket.create_connection(('192.0.2.1', 80), 5)")
        assert plan["isError"]
    control = scene.folder(scene.project / "other")
    with mcp_client.Client(scene, f"--workspace={control}") as client:
        tools = client.call("tools/list")["result"]["tools"]
        python = next(tool for tool in tools if tool["name"] == "python")
        assert python["annotations"]["openWorldHint"], "without the file it has a network"


def test_a_project_file_that_widens_is_refused_until_it_is_trusted(scene):
    file = scene.file("belljar.toml", '[sandbox]\nenv = { WORD = "said" }\n')
    text = refusal(scene, f"--workspace={scene.workdir}")
    assert "env" in text and "belljar trust" in text and str(file) in text
    environment = {**jars.Outside(scene).environment(), "XDG_RUNTIME_DIR": str(scene.home)}
    command = scene.identity.command([os.environ["BELLJAR"], "trust", str(file)])
    subprocess.run(command, cwd=scene.home, env=environment, check=True, capture_output=True, timeout=60)
    with mcp_client.Client(scene, f"--workspace={scene.workdir}") as client:
        assert client.text("shell", commands=["echo $WORD"]) == "said\n"


def test_a_path_of_a_project_leads_no_guest_elsewhere_later(scene):
    """The file is judged at the start. A guest can put a link where it names a folder, and ask for another session."""
    for folder in ("data", "data/in", "data/in/outside"):
        scene.folder(folder, 0o777)
    scene.file("belljar.toml", '[sandbox]\nallow_write = ["./data", "./data/in/outside"]\n')
    with mcp_client.Client(scene, f"--workspace={scene.workdir}") as client:
        plant = f"mv data/in data/old && ln -s {scene.base} data/in && echo planted"
        assert client.text("shell", commands=[plant], session="first") == "planted\n"
        second = client.tool("shell", commands=[f"echo bad > {scene.outside}/bad"], session="second")
        assert second["isError"] and "belljar.toml" in second["content"][0]["text"], second
        assert not (scene.outside / "bad").exists()


def test_without_a_workspace_the_file_of_the_current_folder_counts(scene):
    scene.file(scene.home / "belljar.toml", '[sandbox]\nnetwork = "none"\nmax_procs = 50\n')
    with mcp_client.Client(scene) as client:
        assert client.text("shell", commands=["pwd; ulimit -u > n; ls"], session="s").endswith("\nn\nfiles: n\n")
        text = client.call("prompts/get", name="what_may_i_do")["result"]["messages"][0]["content"]["text"]
        assert "50" in text and "none" in text, text


# ---------------------------------------------------------------- agents


def agents_in(scene, **files: str) -> pathlib.Path:
    for name, text in files.items():
        scene.file(scene.home / f"agents/{name}.md", text)
    return scene.home / "agents"


CODER = "---\nname: coder\npermission:\n  bash: allow\n---\n"


def test_only_the_agent_that_is_meant_is_loaded(scene):
    agents_in(scene, coder=CODER, broken="no front matter", worse="---\npermission: allow\n---\n")
    with mcp_client.Client(scene, "--agent=coder") as client:
        assert client.text("shell", commands=["echo hi"]) == "hi\n"
    assert "broken" not in client.stderr()


def test_an_agent_that_is_broken_names_its_file(scene):
    folder = agents_in(scene, coder="---\npermission:\n  bash: perhaps\n---\n")
    run = run_mcp(scene, "--agent=coder")
    assert run.returncode == 125
    assert f"{folder}/coder.md: permission: bash: perhaps is not one of allow, ask, deny" in run.stderr


def test_an_unknown_key_of_an_agent_names_what_was_meant(scene):
    folder = agents_in(scene, coder="---\nname: coder\npermissions:\n  bash: allow\n---\n")
    text = refusal(scene, "--agent=coder")
    assert f"{folder}/coder.md: unknown key permissions" in text and "did you mean permission?" in text


def test_an_unknown_agent_names_what_there_is(scene):
    folder = agents_in(scene, coder=CODER, reader="---\npermission:\n  read: allow\n---\n")
    text = refusal(scene, "--agent=codr")
    assert f"there is no agent codr in " in text and str(folder) in text
    assert "did you mean coder? there are coder, reader" in text
    assert "there are coder, reader" in refusal(scene, "--agent=somebody-else")
    assert "is no name of an agent" in refusal(scene, "--agent=../coder")
    empty = scene.folder(scene.home / "none")
    assert "an agent is a file" in refusal(scene, "--agent=coder", f"--agents={empty}")


def test_an_agent_without_permission_is_warned_of(scene):
    agents_in(scene, idle="---\nname: idle\n---\n", typist="---\npermission:\n  pyhton: allow\n---\n")
    assert "it has no key permission, so it may do nothing" in run_mcp(scene, "--agent=idle").stderr
    assert "no tool pyhton here; did you mean python?" in run_mcp(scene, "--agent=typist").stderr


def test_the_example_of_the_page_works(scene):
    (example,) = re.findall(r"```markdown\n(---\n.*?)```", (DOCS / "mcp.md").read_text(), re.DOTALL)
    agents_in(scene, reviewer=example)
    with mcp_client.Client(scene, "--agent=reviewer") as client:
        assert client.text("shell", commands=["git --version"]).startswith("git version")
        denied = client.tool("write", path="x", content="y")["structuredContent"]
        assert denied["error_type"] == "denied"
        denied = client.tool("shell", commands=["git push"])["structuredContent"]
        assert denied["error_type"] == "denied"
    assert client.stderr() == ""


# ---------------------------------------------------------------- signals and sockets


def leftovers(pid: int) -> list[str]:
    return glob.glob(f"/tmp/belljar-{pid}-*")


def begin_mcp(scene, stdout: int) -> subprocess.Popen:
    environment = {**jars.Outside(scene).environment(), "XDG_RUNTIME_DIR": str(scene.home)}
    return subprocess.Popen(
        scene.identity.command([os.environ["BELLJAR"], "mcp", "--audit=none"]), cwd=scene.home, env=environment,
        stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def test_two_signals_during_its_start_leave_nothing(scene):
    """One as soon as its folder is there, one more at once: neither may find it without anybody to remove it."""
    process = begin_mcp(scene, subprocess.DEVNULL)
    with process:
        end = time.monotonic() + mcp_client.PATIENCE
        while not leftovers(process.pid):
            assert process.poll() is None and time.monotonic() < end
        os.kill(process.pid, signal.SIGTERM)
        os.kill(process.pid, signal.SIGTERM)
        process.wait(mcp_client.PATIENCE)
        assert not leftovers(process.pid)


def test_a_client_that_reads_no_more_leaves_nothing(scene):
    process = begin_mcp(scene, subprocess.PIPE)
    ping = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\n"
    process.stdin.write(ping)
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["result"] == {}
    assert leftovers(process.pid) and list((scene.home / "belljar").glob("mcp-*.sock")), "the control"
    process.stdout.close()
    process.stdin.write(ping)
    process.stdin.flush()
    assert process.wait(mcp_client.PATIENCE) == 0, "and no signal ended it"
    process.stdin.close()
    assert not leftovers(process.pid) and not list((scene.home / "belljar").glob("mcp-*.sock"))


def test_the_socket_of_one_that_was_killed_is_swept_by_the_next(scene):
    client = mcp_client.Client(scene)
    folder = scene.home / "belljar"
    (dead,) = folder.glob("mcp-*.sock")
    client.process.kill()
    client.process.wait()
    client.process.stdin.close()
    client.process.stdout.close()
    assert dead.exists(), "the control"
    # One that somebody listens on stays, whatever its number; and so does what is none of ours.
    alive = folder / "mcp-4194303.sock"
    other = folder / "else-4194303.sock"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as forgotten:
        listener.bind(str(alive))
        listener.listen()
        forgotten.bind(str(other))
        scene.identity.own(alive, other)
        with mcp_client.Client(scene) as second:
            assert not dead.exists() and alive.exists() and other.exists()
            assert (folder / f"mcp-{second.process.pid}.sock").exists()


def test_a_call_whose_client_went_away_is_in_the_audit(scene):
    client = mcp_client.Client(scene, "--permission=ask", capabilities={})
    client.send_tool("shell", {"progressToken": 1}, commands=["touch ran"])
    client.wait_for(lambda m: m.get("method") == "notifications/progress")
    client.process.stdin.close()
    assert client.process.wait(mcp_client.PATIENCE) == 0
    client.close()
    decision, call = client.trail()
    assert (decision["event"], decision["decision"], decision["message"]) == ("decision", "denied", "the session was closed")
    assert (call["event"], call["tool"], call["outcome"]) == ("call", "shell", "not_approved")


def test_a_signal_denies_what_waits_for_approval_and_says_so(scene):
    client = mcp_client.Client(scene, "--permission=ask", capabilities={})
    number = client.send_tool("shell", {"progressToken": 1}, commands=["touch ran"])
    client.wait_for(lambda m: m.get("method") == "notifications/progress")
    client.process.send_signal(signal.SIGTERM)
    assert client.process.wait(mcp_client.PATIENCE) == 0
    answer = client.wait(number)["result"]
    assert answer["structuredContent"]["error_type"] == "not_approved"
    assert "the server is stopping" in answer["content"][0]["text"]
    client.close()
    decision, call = client.trail()
    assert (decision["event"], decision["decision"], decision["by"]) == ("decision", "denied", "shutdown")
    assert (call["event"], call["outcome"]) == ("call", "not_approved")
