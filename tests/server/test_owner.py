"""A server where jars have no namespaces: a guest has the server's user, processes and mounts, and
only what the owner knows tells the two apart."""

from __future__ import annotations

import glob
import os
import subprocess

import jar as jars
import mcp_client
import poor
import pytest
import serving

pytestmark = pytest.mark.parametrize("identity", ["user"], indirect=True)

# What is said at each socket, with each key that can be read: what it answers, or why not.
ASK = """
import glob, os, socket
said = []
def ask(path, text):
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(20); s.connect(path); s.sendall(text.encode())
            return s.recv(100).decode()[:12]
    except OSError as error: return type(error).__name__
def keys(folder):
    try: return [open(os.path.join(folder, name)).read().strip() for name in sorted(os.listdir(folder)) if name.startswith("key-")]
    except OSError as error: return [type(error).__name__]
def key_of(path):
    about = os.stat(path)
    try: return open(os.path.join(FOLDER, "key-%d-%d" % (about.st_dev, about.st_ino))).read().strip()
    except OSError as error: return type(error).__name__
"""
SERVE = ASK + """
for key in ("", "Authorization: Bearer %s\\r\\n" % key_of(SOCKET)):
    said.append(ask(SOCKET, "GET /v1/sessions HTTP/1.0\\r\\nHost: x\\r\\n" + key + "\\r\\n"))
said.append(ask(APPROVALS, '{"op":"list"}\\n'))
said.append(ask(APPROVALS, '{"key":"%s"}\\n{"op":"list"}\\n' % key_of(APPROVALS)))
said.append(keys(FOLDER))
print(said)
"""


def beside(process: subprocess.Popen, identity, code: str) -> str:
    """Run by the server's owner, where the server runs."""
    way = ["/usr/bin/nsenter", "--user", "--preserve-credentials", f"--target={process.pid}", "/usr/bin/python3", "-c", code]
    done = subprocess.run(identity.command(way), capture_output=True, text=True, timeout=60 * jars.SLOWER)
    assert done.returncode == 0, done
    return done.stdout


def test_a_guest_of_serve_is_not_its_owner(start, scene):
    server = start(brought=poor.brought)
    folder = server.folder / "belljar"
    (approvals,) = folder.glob("approvals-*.sock")
    names = f"SOCKET, APPROVALS, FOLDER = {server.socket_path!r}, {str(approvals)!r}, {str(folder)!r}\n"
    ann, bob = server.client("ann"), server.client("bob")
    bob.session(id="bobs")
    said = ann.python(ann.session(), names + SERVE)["stdout"]
    assert said.strip() == str(["PermissionError"] * 5).replace("'PermissionError']", "['PermissionError']]"), said
    outside = beside(server.process, scene.identity, names + SERVE)
    keys = sorted([server.owner_key(), server.owner_key(approvals)])
    assert eval(outside) == ["HTTP/1.1 401", "HTTP/1.1 200", "", '{"pending":[', keys], "the control"


def test_a_guest_of_mcp_does_not_decide(scene):
    with mcp_client.Client(scene, "--profile=developer", brought=poor.brought) as client:
        (path,) = glob.glob(f"{scene.home}/belljar/mcp-*.sock")
        code = (
            f"FOLDER, PATH = {str(scene.home / 'belljar')!r}, {path!r}\n" + ASK
            + "for key in ('{}', '{\"key\":\"%s\"}' % key_of(PATH)):\n"
            + "    said.append(ask(PATH, key + '\\n{\"op\":\"list\"}\\n'))\nprint(said)\n"
        )
        inside = client.tool("python", code=code)["structuredContent"]["stdout"]
        assert eval(inside) == ["PermissionError"] * 2, inside
        assert eval(beside(client.process, scene.identity, code)) == ["", '{"pending":['], "the control"


def test_the_owner_still_uses_it_from_a_terminal(start, scene):
    """Also root; another user does not."""
    server = start()
    server.client("ann").session(id="one")
    environment = {"XDG_RUNTIME_DIR": str(server.folder), "PATH": jars.SYSTEM_PATH, "HOME": str(scene.home)}

    def sessions(*before: str) -> subprocess.CompletedProcess:
        command = [*before, jars.binary(), "sessions", "list", f"--socket={server.socket_path}"]
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd="/", timeout=serving.PATIENCE)

    assert sessions(*scene.identity.command([])).stdout.startswith("one@ann ")
    if os.geteuid() != 0:
        return
    folder = server.folder / "belljar"
    environment["XDG_RUNTIME_DIR"] = "/nonexistent"
    other = sessions("/usr/bin/setpriv", f"--reuid={jars.NEIGHBOUR_UID}", "--clear-groups", "--")
    assert other.returncode == 125 and not other.stdout, other
    # Root finds it beside the socket of a server that nothing was said of.
    own = subprocess.run(
        [jars.binary(), "sessions", "list", f"--socket={next(folder.glob('approvals-*.sock'))}"],
        capture_output=True, text=True, env=environment, cwd="/", timeout=serving.PATIENCE,
    )  # fmt: skip
    assert "owner's key" not in own.stderr, "it was found; the socket speaks no HTTP"
