"""Sockets of the host where no mounts hide them: there a guest has the caller's own uid, and
neither Landlock nor the mode of a file stops a connect."""

from __future__ import annotations

import os
import secrets
import socket

import jar as jars
import poor
import pytest

POLICY = ["--network=none", *poor.ACCEPTED]

# argv: the host's sockets, as "stream", "dgram" and "seqpacket", in one folder.
CALLS = r"""
import contextlib, os, socket, sys
folder, inside = sys.argv[1:3]
U = socket.AF_UNIX
def to(kind, path):
    with socket.socket(U, kind) as s:
        s.connect(path)
        with contextlib.suppress(BrokenPipeError): s.send(b"knock")  # it may hang up at once
def send(path, how):
    with socket.socket(U, socket.SOCK_DGRAM) as s: how(s, path)
def pair(path):
    for s in socket.socketpair(U, socket.SOCK_DGRAM): s.sendto(b"knock", path)
os.symlink(folder, inside + "/link"); os.symlink(folder + "/stream", inside + "/leads")
up = os.path.relpath(folder, inside)
os.chdir(inside)
tries = {
    "absolute": lambda: to(socket.SOCK_STREAM, folder + "/stream"),
    "relative": lambda: to(socket.SOCK_STREAM, up + "/stream"),
    "dots": lambda: to(socket.SOCK_STREAM, inside + "/" + up + "/./stream"),
    "symlink": lambda: to(socket.SOCK_STREAM, "link/stream"),
    "symlink to it": lambda: to(socket.SOCK_STREAM, "leads"),
    "through proc": lambda: to(socket.SOCK_STREAM, "/proc/self/cwd/link/stream"),
    "through root": lambda: to(socket.SOCK_STREAM, "/proc/self/root" + folder + "/stream"),
    "seqpacket": lambda: to(socket.SOCK_SEQPACKET, folder + "/seqpacket"),
    "dgram connect": lambda: to(socket.SOCK_DGRAM, folder + "/dgram"),
    "dgram raw": lambda: to(socket.SOCK_RAW, folder + "/dgram"),
    "sendto": lambda: send(folder + "/dgram", lambda s, p: s.sendto(b"knock", p)),
    "sendmsg": lambda: send(folder + "/dgram", lambda s, p: s.sendmsg([b"knock"], [], 0, p)),
    "pair": lambda: pair(folder + "/dgram"),
}
for name, attempt in tries.items():
    try: attempt(); print("ESCAPED", name)
    except OSError as error: print("stopped", name + ":", error.errno)
print("done")
"""


class Host:
    """Services of the caller's own, in a folder that nobody else may enter."""

    def __init__(self, scene):
        self.folder = scene.outside / "d"
        self.folder.mkdir(mode=0o700)
        scene.identity.own(self.folder)
        self.listeners = {}
        before = os.getcwd()
        os.chdir(self.folder)  # a socket's path has 107 bytes at most
        try:
            for name in ("stream", "dgram", "seqpacket"):
                kind = getattr(socket, f"SOCK_{name.upper()}")
                self.listeners[name] = jars.Listener(socket.AF_UNIX, kind, name)
                scene.identity.own(self.folder / name)
                scene.on_exit(self.listeners[name].close)
        finally:
            os.chdir(before)

    def called(self) -> set[str]:
        return {name for name, listener in self.listeners.items() if listener.called()}


def runner(scene, setting):
    return jars.Outside(scene) if setting == "control" else poor.PoorJar(scene, setting)


@pytest.mark.parametrize("identity", ["user"], indirect=True)
@pytest.mark.parametrize("setting", ["control", *jars.PROFILES])
def test_calls_a_service_of_the_host_without_mounts(identity, scene, setting):
    host = Host(scene)
    inside = scene.workdir / "w"
    inside.mkdir()
    identity.own(inside)
    run = runner(scene, setting).run(["/usr/bin/python3", "-c", CALLS, host.folder, inside], policy=POLICY)
    assert "done" in run.stdout, run
    if setting == "control":
        assert "stopped" not in run.stdout and host.called() == set(host.listeners), run
        return
    assert "ESCAPED" not in run.stdout and not host.called(), run
    broken = {loss["what"] for loss in run.report["losses"] if loss["promise"] == "files" and loss["broken"]}
    assert not broken, "and the promise is kept"


@pytest.mark.parametrize("identity", ["user"], indirect=True)
@pytest.mark.parametrize("setting", ["control", "developer", "public-bot"])
def test_changes_a_call_while_it_is_made_for_it(identity, scene, setting, programs):
    """Neither what the pointer leads to nor what the number stands for can be another afterwards."""
    host = Host(scene)
    tcp = jars.Listener(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
    scene.on_exit(tcp.close)
    program = scene.file("25_unix_race", programs.path("25_unix_race").read_bytes(), mode=0o755)
    policy = ["--network=full", *poor.ACCEPTED] if setting == "developer" else POLICY
    run = runner(scene, setting).run(
        [program, "own.sock", host.folder / "stream", str(4 * jars.SLOWER), str(tcp.port)], policy=policy, timeout=60
    )
    assert "called its own" in run.stdout and "done" in run.stdout, run
    assert bool(host.called()) == (setting == "control"), run


@pytest.mark.parametrize("identity", ["user"], indirect=True)
@pytest.mark.parametrize("setting", ["control", *jars.PROFILES])
def test_calls_an_abstract_name_without_a_network_namespace(identity, scene, setting):
    name = f"belljar-test-{secrets.token_hex(6)}"
    listener = jars.Listener(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{name}", identity)
    scene.on_exit(listener.close)
    code = f"import socket\nsocket.socket(socket.AF_UNIX).connect('\\0{name}')"
    run = runner(scene, setting).run(["/usr/bin/python3", "-c", code], policy=POLICY)
    assert listener.called() == (setting == "control") and (run.exit == 0) == (setting == "control"), run


@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_a_socket_that_was_granted_by_name_can_be_called(identity, scene):
    host = Host(scene)
    path = host.folder / "stream"
    code = f"import socket\nsocket.socket(socket.AF_UNIX).connect({str(path)!r})"
    jar = poor.PoorJar(scene, "developer")
    granted = jar.run(["/usr/bin/python3", "-c", code], policy=[*POLICY, f"--allow-write={path}"])
    assert granted.exit == 0 and host.called() == {"stream"}, granted
    refused = jar.run(["/usr/bin/python3", "-c", code], policy=[*POLICY, f"--allow-read={host.folder}"])
    assert "PermissionError" in refused.stderr, "its folder may only be read"


@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_who_cannot_be_looked_into_connects_to_nobody(identity, scene):
    host = Host(scene)
    code = f"""
import ctypes, socket
socket.socket(socket.AF_UNIX).bind("own")
for dumpable in (1, 0):
    assert ctypes.CDLL(None).prctl(4, dumpable, 0, 0, 0) == 0
    for path in ("own", {str(host.folder / "stream")!r}):
        try: socket.socket(socket.AF_UNIX).connect(path)
        except OSError as error: print(dumpable, type(error).__name__)
"""
    run = poor.PoorJar(scene, "developer").run(["/usr/bin/python3", "-c", code], policy=POLICY)
    assert run.stdout.split("\n")[:4] == [
        "1 ConnectionRefusedError", "1 PermissionError", "0 PermissionError", "0 PermissionError",
    ], run  # fmt: skip
    assert not host.called()
