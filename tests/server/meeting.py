"""Run in a mount namespace of its own, by test_cli_places.py: a server that was started without XDG_RUNTIME_DIR, as
clients of MCP do it, and a person who looks for what waits there.

    meeting.py LOGIN|- UID GID BINARY VARIABLE=value...
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time

PATIENCE = 60


def mount_own(login: str, uid: int, gid: int) -> None:
    """Where a login's folder is, or without one what stands in for it, is one that nobody else has."""
    place = "/tmp" if login == "-" else "/run"
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", place], check=True)
    if login != "-":
        os.makedirs(login, 0o755)
        os.chmod(login, 0o700)
        if os.geteuid() == 0:
            os.chown(login, uid, gid)


def drop_to(uid: int, gid: int) -> None:
    if os.geteuid() == 0 and uid != 0:
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)


def line(number: int | None, method: str, **params) -> str:
    name = {} if number is None else {"id": number}
    return json.dumps({"jsonrpc": "2.0", **name, "method": method, "params": params}) + "\n"


def main(login: str, uid: str, gid: str, binary: str, *variables: str) -> None:
    if binary.startswith("/tmp/"):  # where it will not be seen
        binary = shutil.copy(binary, os.path.join(os.environ["HOME"], "program"))
    mount_own(login, int(uid), int(gid))
    drop_to(int(uid), int(gid))
    persons = {**os.environ, **dict(variable.split("=", 1) for variable in variables)}
    server = subprocess.Popen(
        [binary, "mcp", "--audit=none", "--permission=ask"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    server.stdin.write(
        line(1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "c", "version": "1"})
        + line(None, "notifications/initialized")
        + line(2, "tools/call", name="shell", arguments={"commands": ["echo hi"]})
    )
    server.stdin.flush()
    found = []
    deadline = time.monotonic() + PATIENCE
    while not found and time.monotonic() < deadline:
        asked = subprocess.run([binary, "approvals", "list", "--json"], env=persons, capture_output=True, text=True)
        found = json.loads(asked.stdout or "[]")
        time.sleep(0.1)
    for one in found:
        subprocess.run([binary, "approvals", "approve", one["approval_id"]], env=persons, check=True)
    server.stdin.close()
    answers = [json.loads(text) for text in server.stdout]
    server.wait(PATIENCE)
    print(json.dumps({"found": len(found), "answer": next((one for one in answers if one.get("id") == 2), None)}))


main(*sys.argv[1:])
