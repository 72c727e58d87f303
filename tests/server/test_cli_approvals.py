"""`belljar approvals`: who asks, what a yes may be for, and servers that cannot be asked."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import socket
import stat
import subprocess
import threading

import jar as jars
import pytest
import serving

CODER = "---\nname: coder\npermission:\n  bash: ask\n---\n"


@pytest.fixture
def asking(start, scene):
    folder = scene.home / "agents"
    folder.mkdir(mode=0o755)
    (folder / "coder.md").write_text(CODER)
    return start("--permission=ask", f"--agents={folder}")


@pytest.fixture
def cli(asking, scene):
    environment = {**jars.Outside(scene).environment(), "HOME": str(scene.home), "XDG_RUNTIME_DIR": str(asking.folder)}

    def run(*words: str, typed: str | None = None) -> subprocess.CompletedProcess:
        command = scene.identity.command([jars.binary(), "approvals", *words])
        return subprocess.run(
            command, cwd=scene.home, env=environment, input=typed, capture_output=True, text=True,
            timeout=2 * serving.PATIENCE,
        )  # fmt: skip

    run.environment = environment
    return run


class Call:
    """One of a client's that a person must approve."""

    def __init__(self, client, session: str, command: str, **fields):
        known = {one["approval_id"] for one in client.get("/v1/approvals").json["approvals"]}
        self.thread = threading.Thread(target=self._run, args=(client, session, command, fields))
        self.thread.start()
        assert serving.wait_until(lambda: self._asked(client, known))

    def _run(self, client, session, command, fields):
        self.answer = client.post(f"/v1/sessions/{session}/shell", commands=[command], **fields)

    def _asked(self, client, known) -> bool:
        for one in client.get("/v1/approvals").json["approvals"]:
            if one["approval_id"] not in known:
                self.approval = one
                return True
        return False

    def wait(self) -> serving.Answer:
        self.thread.join(serving.PATIENCE)
        return self.answer


def test_who_asks_is_named(asking, cli):
    ann = asking.client("ann")
    session = ann.session()
    with ann.stream("GET", f"/v1/events?session={session}&types=agentic_tool_approval_required") as events:
        call = Call(ann, session, "echo hi", agent="coder")
        told = events.until("agentic_tool_approval_required")
    assert (told["asked_by"], told["agent"]) == ("ann", "coder"), told
    assert (call.approval["asked_by"], call.approval["agent"]) == ("ann", "coder"), call.approval
    (listed,) = json.loads(cli("list", "--json").stdout)
    assert (listed["asked_by"], listed["agent"]) == ("ann", "coder"), listed
    shown = cli("list").stdout
    assert "asked by ann" in shown and "agent coder" in shown and ann.token not in shown, shown
    plain = Call(ann, session, "echo ho")
    assert plain.approval["asked_by"] == "ann" and "agent" not in plain.approval
    for one in (call, plain):
        assert cli("deny", one.approval["approval_id"]).returncode == 0
        assert one.wait().status == 403


def test_who_asks_in_anothers_session_is_named(asking, cli):
    ann, bob = asking.client("ann"), asking.client("bob")
    call = Call(bob, ann.session(shared=True) + "@ann", "echo hi")
    assert "asked by bob" in cli("list").stdout
    cli("deny", call.approval["approval_id"])
    call.wait()


# ------------------------------------------------------- servers that fail


class Fake:
    """What lies beside the sockets of servers, and is no good one."""

    def __init__(self, server, scene, does):
        self.path = str(server.folder / "belljar/mcp-other.sock")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        about = os.stat(self.path)
        self.key = str(server.folder / f"belljar/key-{about.st_dev}-{about.st_ino}")
        pathlib.Path(self.key).write_text("x\n")
        scene.identity.own(self.path, self.key)
        self.open = []
        if does == "refuses":
            self.listener.close()
            return
        self.listener.listen(4)
        threading.Thread(target=self._serve, args=(does,), daemon=True).start()

    def _serve(self, does):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.open.append(connection)
                with contextlib.suppress(OSError):
                    said = connection.recv(1000)
                    while b'"op"' not in said:  # the key comes first
                        said = connection.recv(1000)
                    if does == "says too much":
                        connection.sendall(b"x" * (65 << 20))
                    if does == "makes no sense":
                        connection.sendall(b'{"what": 1}\n')
                    if does == "hangs up":
                        connection.close()

    def close(self):
        os.unlink(self.path)
        os.unlink(self.key)
        for one in (self.listener, *self.open):
            one.close()


FAULTS = {
    "refuses": "Connection refused",
    "hangs up": "it hung up",
    "says too much": "it says more than 64 MiB at once",
    "makes no sense": "its answer makes no sense",
    "is silent": "it has not answered for 5 s",
}


@pytest.mark.parametrize("does", FAULTS)
def test_a_server_that_cannot_be_asked_is_named_and_the_others_are_shown(asking, scene, cli, does):
    ann = asking.client("ann")
    call = Call(ann, ann.session(), "echo hi")
    number = call.approval["approval_id"]
    assert cli("list").returncode == 0, "the control"
    with contextlib.closing(Fake(asking, scene, does)) as fake:
        listed = cli("list")
        assert listed.returncode == 1 and number in listed.stdout, listed
        assert fake.path in listed.stderr and FAULTS[does] in listed.stderr, listed.stderr
        if does == "refuses":
            assert f"rm {fake.path}" in listed.stderr
        data = cli("list", "--json")
        assert data.returncode == 1 and [one["approval_id"] for one in json.loads(data.stdout)] == [number]
        other = cli("approve", "a_none")
        assert other.returncode == 125 and fake.path in other.stderr and "nothing of that id" in other.stderr
        assert cli("approve", number).returncode == 0
        assert call.wait().json["stdout"] == "hi\n"
        nothing = cli("list")
        assert nothing.returncode == 1 and "where it could be asked" in nothing.stdout, nothing


def test_a_server_that_hangs_up_is_said_and_the_others_are_heard_on(asking, scene, cli):
    with contextlib.closing(Fake(asking, scene, "hangs up")) as fake:
        person = prompt(cli, scene, "y\n")
        ann = asking.client("ann")
        assert runs_unasked(ann, ann.session(), "echo hi"), "the control: he is still there, and said yes"
        asking.signal(signal.SIGTERM)
        assert asking.wait() == 0
        _, errors = person.communicate(timeout=serving.PATIENCE)
    assert person.returncode == 1, "none is left"
    assert fake.path in errors and errors.count("it hung up") == 2, errors


# ---------------------------------------------------------------- the socket


def connect(server) -> socket.socket:
    (path,) = (server.folder / "belljar").glob("approvals-*.sock")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(serving.PATIENCE)
    client.connect(str(path))
    client.sendall(json.dumps({"key": server.owner_key(path)}).encode() + b"\n")
    return client


def test_much_that_waits_is_all_told_to_who_watches(asking):
    """Of two tokens, each call with nearly as much as a person may be asked about."""
    calls, code = 40, "#" * (250 << 10)

    def ask(client, session):
        client.post(f"/v1/sessions/{session}/python", code=code)

    threads = []
    for client in (asking.client("ann"), asking.client("bob")):
        session = client.session()
        threads += [threading.Thread(target=ask, args=(client, session)) for _ in range(calls)]
    for thread in threads:
        thread.start()
    with connect(asking) as client, client.makefile("rwb") as lines:

        def pending() -> int:
            lines.write(b'{"op":"list"}\n')
            lines.flush()
            return len(json.loads(lines.readline())["pending"])

        assert serving.wait_until(lambda: pending() == 2 * calls)
        lines.write(b'{"op":"watch"}\n')
        lines.flush()
        told = [json.loads(lines.readline()) for _ in range(2 * calls)]
    assert {one["event"] for one in told} == {"required"} and len({one["approval_id"] for one in told}) == 2 * calls
    asking.signal(signal.SIGTERM)
    for thread in threads:
        thread.join(serving.PATIENCE)


def test_no_program_inherits_a_socket_of_the_server(asking):
    with connect(asking) as client:
        client.sendall(b'{"op":"list"}\n')
        assert client.recv(100) == b'{"pending":[]}\n', "the control: it was taken in"
        place, flags = f"/proc/{asking.process.pid}", {}
        for name in os.listdir(f"{place}/fd"):
            with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
                if os.readlink(f"{place}/fd/{name}").startswith("socket:"):
                    with open(f"{place}/fdinfo/{name}") as about:
                        flags[name] = int(about.read().split("flags:")[1].split()[0], 8)
    assert len(flags) >= 4, flags  # two that it serves on, that of the approvals, and this one
    assert all(one & os.O_CLOEXEC for one in flags.values()), flags


# ---------------------------------------------------------------- scopes


def test_help_explains_every_scope(cli):
    said = cli("--help").stdout
    for scope in ("once", "tool", "pattern", "same"):
        assert f"\n  {scope} " in said, said
        assert scope == "once" or scope == "pattern" or f"--scope={scope}" in said


@pytest.mark.parametrize(
    "words",
    [("approve", "a_1", "--scope=all"), ("approve", "a_1", "--scope=pattern"), ("deny", "a_1", "--scope=tool"),
     ("approve", "a_1", "--scope=tool", "--pattern=x")],
)  # fmt: skip
def test_a_scope_that_makes_no_sense_is_refused(asking, cli, words):
    done = cli(*words)
    assert done.returncode == 125 and "scope" in done.stderr, done
    assert "nothing of that id" not in done.stderr, "it was not even asked"


def runs_unasked(ann, session, command) -> bool:
    return ann.post(f"/v1/sessions/{session}/shell", commands=[command]).status == 200


@pytest.mark.parametrize(
    "words, covers",
    [([], None), (["--scope=once"], None), (["--scope=tool"], "id"), (["--scope=same"], "echo hi"),
     (["--pattern=echo *"], "echo ho")],
)  # fmt: skip
def test_a_yes_counts_for_its_scope(asking, cli, words, covers):
    ann = asking.client("ann")
    session = ann.session()
    call = Call(ann, session, "echo hi")
    assert cli("approve", call.approval["approval_id"], *words).returncode == 0
    assert call.wait().json["stdout"] == "hi\n"
    if covers is not None:
        assert runs_unasked(ann, session, covers)
    if "--scope=tool" not in words:  # the control
        again = Call(ann, session, "echo hi" if covers is None else "true")
        cli("deny", again.approval["approval_id"])
        assert again.wait().status == 403


def prompt(cli, scene, typed: str) -> subprocess.Popen:
    process = subprocess.Popen(
        scene.identity.command([jars.binary(), "approvals"]), cwd=scene.home, env=cli.environment,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    process.stdin.write(typed)
    process.stdin.flush()
    return process


def test_the_prompt_offers_and_explains_every_scope(asking, scene, cli):
    """What is not understood is answered with what there is, and a pattern that does not match is asked about again."""
    ann = asking.client("ann")
    session = ann.session()
    call = Call(ann, session, "echo one")
    person = prompt(cli, scene, "?\np ls *\np echo *\ns\nn use the other one\n")
    assert call.wait().json["stdout"] == "one\n"
    assert runs_unasked(ann, session, "echo two"), "by the pattern"
    assert ann.post(f"/v1/sessions/{session}/shell", commands=["true"]).status == 200, "he said s"
    assert runs_unasked(ann, session, "true"), "the very same"
    refused = ann.post(f"/v1/sessions/{session}/shell", commands=["false"])
    assert refused.status == 403 and refused.error["message"].endswith("use the other one"), refused
    person.terminate()
    shown, errors = person.communicate(timeout=serving.PATIENCE)
    assert "asked by ann" in shown
    assert "[y]es [n]o [a]lways (this tool, in this session) [s]ame [p]attern (commands, in this session)" in shown
    for line in ("yes, this once", "every call of this tool", "the very same commands", "that match"):
        assert line in shown, shown
    assert "the pattern does not match" in errors, errors


def test_the_prompt_offers_no_commands_where_there_are_none(asking, scene, cli):
    ann = asking.client("ann")
    session = ann.session()
    answers = []
    call = threading.Thread(target=lambda: answers.append(ann.post(f"/v1/sessions/{session}/python", code="6 * 7")))
    call.start()
    person = prompt(cli, scene, "s\na\n")
    call.join(serving.PATIENCE)
    assert answers[0].json["result"] == "42"
    assert ann.python(session, "'always'")["result"] == "'always'"
    person.terminate()
    shown, _ = person.communicate(timeout=serving.PATIENCE)
    assert "[a]lways" in shown and "[s]ame" not in shown and "p PATTERN" not in shown, shown
