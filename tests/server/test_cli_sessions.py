"""`belljar sessions` against a running `belljar serve`, over its local socket."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import time

import jar as jars
import pytest
import serving


@pytest.fixture
def cli(server, scene):
    environment = {**jars.Outside(scene).environment(), "HOME": str(scene.home), "TERM": "dumb"}
    environment["XDG_RUNTIME_DIR"] = str(server.folder)  # as the server has it: its key is there

    def run(*words, **options):
        command = scene.identity.command([jars.binary(), "sessions", *words, f"--socket={server.socket_path}"])
        options = {"capture_output": True, "text": True, "timeout": serving.PATIENCE, **options}
        return subprocess.run(command, cwd=scene.home, env=environment, **options)

    run.environment = environment
    return run


class Terminal:
    """A person who attached to a session."""

    def __init__(self, scene, server, environment, *words):
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            scene.identity.command([jars.binary(), "sessions", "attach", *words, f"--socket={server.socket_path}"]),
            cwd=scene.home, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
            start_new_session=True, preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(theirs)
        self.said = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *failure) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.ours)

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def hear(self, wanted: str) -> None:
        deadline = time.monotonic() + 2 * serving.PATIENCE
        while wanted not in self.said:
            assert time.monotonic() < deadline, self.said
            if select.select([self.ours], [], [], 1)[0]:
                self.said += os.read(self.ours, 65536).decode(errors="replace")
        self.said = self.said[self.said.index(wanted) + len(wanted) :]

    def leave(self) -> int:
        # Typed before the prompt has the terminal, ^D means something else, and is part of the line: that is taken
        # away first, as often as it takes.
        for _ in range(int(serving.PATIENCE)):
            self.type("\x15\x04")
            try:
                return self.process.wait(1)
            except subprocess.TimeoutExpired:
                pass
        raise AssertionError(f"it did not end: {self.said}")


def test_sessions_are_listed_and_ended(server, ann, cli):
    assert cli("list").stdout == "There are no sessions.\n"
    session = ann.session(id="one")
    assert ann.python(session, "6 * 7")["result"] == "42"
    shown = cli("list").stdout
    assert "one" in shown and "ann" in shown and "developer" in shown, shown
    assert [one["id"] for one in json.loads(cli("list", "--json").stdout)] == ["one@ann"]
    assert cli("kill", "one@ann").returncode == 0
    assert ann.get("/v1/sessions/one").status == 404
    again = cli("kill", "one@ann")
    assert again.returncode == 125 and "no such session" in again.stderr, again


@pytest.mark.parametrize("words", [[], ["attach"], ["kill"], ["list", "x"], ["kill", "a/b"], ["other", "x"]])
def test_what_makes_no_sense_is_refused(cli, words):
    assert cli(*words).returncode == 125


def test_without_a_server_it_is_said(scene):
    done = subprocess.run(
        scene.identity.command([jars.binary(), "sessions", "list", f"--socket={scene.home}/none.sock"]),
        capture_output=True, text=True, timeout=serving.PATIENCE, cwd=scene.home,
    )  # fmt: skip
    assert done.returncode == 125 and "belljar serve" in done.stderr, done


def test_attached_to_python_output_streams_and_the_session_outlives_it(server, scene, ann, cli):
    session = ann.session()
    ann.python(session, "x = 20")
    with Terminal(scene, server, cli.environment, f"{session}@ann") as person:
        person.hear(">>> ")
        person.type("x * 2 + 2\n")
        person.hear("42")
        person.hear(">>> ")
        person.type("y = input\nimport time; print('be' + 'gun', flush=True); time.sleep(50); print('over')\n")
        person.hear("begun")  # while it sleeps
        person.type("\x03")
        person.hear("KeyboardInterrupt")
        person.hear(">>> ")
        assert person.leave() == 0
    assert ann.python(session, "x, y is input")["result"] == "(20, True)"


def test_attached_to_a_shell(server, scene, ann, cli):
    session = ann.session()
    with Terminal(scene, server, cli.environment, f"{session}@ann", "--shell") as person:
        person.hear("$ ")
        person.type("v=4; echo $((v + 38))\n")
        person.hear("42")
        person.type("(exit 3)\n")
        person.hear("exit code 3")
        person.hear("$ ")
        assert person.leave() == 0
    answer = ann.post(f"/v1/sessions/{session}/shell", commands=["echo $v"]).json
    assert answer["stdout"] == "4\n"


def agents_work(ann, session, tool="python"):
    """A call that an agent makes, and that goes on until there is a file `go`."""
    loop = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.05)\n'done'"
    body = {"code": loop} if tool == "python" else {"commands": ["until test -e go; do sleep 0.05; done; echo done"]}
    return ann.stream("POST", f"/v1/sessions/{session}/{tool}", **body)


def let_it_end(ann, session):
    assert ann("PUT", f"/v1/sessions/{session}/files/go", b"").status == 201


@pytest.mark.parametrize("tool", ["python", "shell"])
def test_attached_one_stops_no_call_of_others(server, scene, ann, cli, tool):
    """What waits behind the agent's call goes, and the agent's call goes on."""
    session = ann.session()
    words = [f"{session}@ann", *(["--shell"] if tool == "shell" else [])]
    with ann.stream("GET", f"/v1/events?session={session}&types=call_started") as started, \
            agents_work(ann, session, tool) as agent:  # fmt: skip
        assert started.until("call_started")["tool"] == tool
        with Terminal(scene, server, cli.environment, *words) as person:
            person.hear("$ " if tool == "shell" else ">>> ")
            person.type("true\n" if tool == "shell" else "1 + 1\n")
            started.until("call_started")
            person.type("\x03")
            person.hear("cancelled before it began")
            person.type("\x03")  # with nothing of one's own that runs
            assert person.leave() == 0
        let_it_end(ann, session)
        result = agent.until("result")
    assert result["status"] == "success" and not result["interrupted"], result
    assert result["result"] == "'done'" if tool == "python" else result["stdout"] == "done\n", result


def test_attached_one_stops_his_own_call_beside_that_of_another(server, scene, ann, cli):
    session = ann.session()
    with agents_work(ann, session) as agent:
        with Terminal(scene, server, cli.environment, f"{session}@ann", "--shell") as person:
            person.hear("$ ")
            person.type("echo be''gun; sleep 500\n")
            person.hear("begun")
            person.type("\x03")
            person.hear("exit code")
            assert person.leave() == 0
        let_it_end(ann, session)
        assert agent.until("result")["result"] == "'done'"


@pytest.mark.parametrize("word", ["exit", " exit 3 ", "logout"])
def test_exit_leaves_and_the_sessions_shell_lives(server, scene, ann, cli, word):
    session = ann.session()
    ann.post(f"/v1/sessions/{session}/shell", commands=["v=5"])
    with Terminal(scene, server, cli.environment, f"{session}@ann", "--shell") as person:
        person.hear("^D or exit leaves, and the session goes on")
        person.hear("$ ")
        person.type(word + "\n")
        assert person.process.wait(serving.PATIENCE) == 0
    answer = ann.post(f"/v1/sessions/{session}/shell", commands=["echo $v"]).json
    assert answer["stdout"] == "5\n" and not answer["notes"], answer


def test_exit_leaves_python_too(server, scene, ann, cli):
    session = ann.session()
    with Terminal(scene, server, cli.environment, f"{session}@ann") as person:
        person.hear(">>> ")
        person.type("exit()\n")
        assert person.process.wait(serving.PATIENCE) == 0


def test_one_call_is_interrupted_by_its_name(server, ann, bob):
    session, other = ann.session(), ann.session()
    with agents_work(ann, session, "shell") as agent, agents_work(ann, session) as mine:
        name = mine.answer.headers["Belljar-Call"]
        stop = f"/v1/sessions/{session}/interrupt"
        assert bob.post(stop, call=name).status == 404
        assert ann.post(f"/v1/sessions/{other}/interrupt", call=name).status == 404
        assert ann.post(stop, call="r_none").error["message"] == "no such call runs in this session"
        assert ann.post(stop, call=name).status == 200
        assert mine.until("result")["interrupted"] is True
        let_it_end(ann, session)
        assert agent.until("result")["interrupted"] is False
    assert ann.post(stop, call=name).status == 404, "it has ended"


# ------------------------------------------------- servers told where to listen


@pytest.fixture
def found(start, scene):
    """Servers that were told where to listen, and nothing of a local socket."""
    folder = scene.home / "run"
    folder.mkdir(mode=0o700)
    scene.identity.own(folder)
    config = scene.home / "plain.toml"
    config.write_text("[session]\npreload = []\n")
    scene.identity.own(config)
    environment = {**jars.Outside(scene).environment(), "HOME": str(scene.home), "XDG_RUNTIME_DIR": str(folder)}

    def begin():
        return start(f"--config={config}", "--listen=127.0.0.1:0", environment={"XDG_RUNTIME_DIR": str(folder)})

    def run(*words):
        command = scene.identity.command([jars.binary(), *words])
        return subprocess.run(
            command, cwd=scene.home, env=environment, capture_output=True, text=True, timeout=serving.PATIENCE
        )  # fmt: skip

    begin.run = run
    begin.folder = folder / "belljar"
    return begin


def test_a_server_that_was_told_where_to_listen_is_found(found):
    found().client("ann").session(id="one")
    shown = found.run("sessions", "list")
    assert shown.returncode == 0 and shown.stdout.startswith("one@ann "), shown
    assert found.run("approvals", "list").stdout == "Nothing waits for approval.\n"
    assert found.run("sessions", "kill", "one@ann").returncode == 0
    assert found.run("sessions", "list").stdout == "There are no sessions.\n"


def test_of_several_servers_all_are_asked(found):
    first, second = found(), found()
    first.client("ann").session(id="one")
    second.client("ann").session(id="two")
    for server in (first, second):
        server.client("ann").session(id="both")
    listed = json.loads(found.run("sessions", "list", "--json").stdout)
    sockets = {server: f"{found.folder}/serve-{server.process.pid}.sock" for server in (first, second)}
    pairs = {(one["id"], one["socket"]) for one in listed}
    assert pairs == {("one@ann", sockets[first]), ("two@ann", sockets[second]), ("both@ann", sockets[first]), ("both@ann", sockets[second])}
    assert found.run("sessions", "kill", "two@ann").returncode == 0
    assert second.client("ann").get("/v1/sessions/two").status == 404
    vague = found.run("sessions", "kill", "both@ann")
    assert vague.returncode == 125 and "--socket=" in vague.stderr, vague
    assert found.run("sessions", "kill", "both@ann", f"--socket={sockets[first]}").returncode == 0
    second.kill()
    lame = found.run("sessions", "list")
    assert lame.returncode == 1 and lame.stdout.startswith("one@ann ") and sockets[second] in lame.stderr, lame


def test_another_user_cannot_use_the_socket(server, ann, cli):
    """Without a token only its owner and root may."""
    if os.geteuid() != 0:
        pytest.skip("needs root to be somebody else")
    os.chmod(server.folder, 0o755)  # so that it is not the folder that keeps them out
    ann.session(id="one")
    other = ["/usr/bin/setpriv", f"--reuid={jars.NEIGHBOUR_UID}", f"--regid={jars.NEIGHBOUR_UID}", "--clear-groups", "--"]
    done = subprocess.run(
        [*other, jars.binary(), "sessions", "kill", "one@ann", f"--socket={server.socket_path}"],
        capture_output=True, text=True, timeout=serving.PATIENCE, cwd="/",
    )  # fmt: skip
    assert done.returncode == 125, done
    assert ann.get("/v1/sessions/one").status == 200
    assert cli("kill", "one@ann").returncode == 0, "the control"
    assert ann.get("/v1/sessions/one").status == 404
