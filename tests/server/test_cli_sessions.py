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
        # Typed before the prompt has the terminal, it is lost: a person would press it again.
        for _ in range(int(serving.PATIENCE)):
            self.type("\n\x04")
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
    assert [one["id"] for one in json.loads(cli("list", "--json").stdout)] == ["one"]
    assert cli("kill", "one").returncode == 0
    assert ann.get("/v1/sessions/one").status == 404
    again = cli("kill", "one")
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
    with Terminal(scene, server, cli.environment, session) as person:
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
    with Terminal(scene, server, cli.environment, session, "--shell") as person:
        person.hear("$ ")
        person.type("v=4; echo $((v + 38))\n")
        person.hear("42")
        person.type("(exit 3)\n")
        person.hear("exit code 3")
        person.hear("$ ")
        assert person.leave() == 0
    answer = ann.post(f"/v1/sessions/{session}/shell", commands=["echo $v"]).json
    assert answer["stdout"] == "4\n"


def test_another_user_cannot_use_the_socket(server, ann, cli):
    """Without a token only its owner and root may."""
    if os.geteuid() != 0:
        pytest.skip("needs root to be somebody else")
    os.chmod(server.folder, 0o755)  # so that it is not the folder that keeps them out
    ann.session(id="one")
    other = ["/usr/bin/setpriv", f"--reuid={jars.NEIGHBOUR_UID}", f"--regid={jars.NEIGHBOUR_UID}", "--clear-groups", "--"]
    done = subprocess.run(
        [*other, jars.binary(), "sessions", "kill", "one", f"--socket={server.socket_path}"],
        capture_output=True, text=True, timeout=serving.PATIENCE, cwd="/",
    )  # fmt: skip
    assert done.returncode == 125, done
    assert ann.get("/v1/sessions/one").status == 200
    assert cli("kill", "one").returncode == 0, "the control"
    assert ann.get("/v1/sessions/one").status == 404
