"""Run by root in a mount namespace of its own, by test_cli_places.py: somebody else was first to make the folder in
/tmp that a server without XDG_RUNTIME_DIR takes for its socket.

    stranger.py UID GID KIND BINARY
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time

PATIENCE = 60
STRANGER = 54321


def plant(kind: str, path: str) -> None:
    if kind == "file":
        open(path, "w").close()
    elif kind == "link":
        os.symlink("/nowhere", path)
    elif kind == "folder":
        os.mkdir(path)
        os.chmod(path, 0o777)
    if kind != "nothing":
        os.lchown(path, STRANGER, STRANGER)


def main(uid: str, gid: str, kind: str, binary: str) -> None:
    if binary.startswith("/tmp/"):  # where it will not be seen
        binary = shutil.copy(binary, os.path.join(os.environ["HOME"], "program"))
    for place in ("/tmp", "/run"):  # and no login has one
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", place], check=True)
    plant(kind, f"/tmp/belljar-run-{uid}")
    os.setgroups([])
    os.setresgid(int(gid), int(gid), int(gid))
    os.setresuid(int(uid), int(uid), int(uid))
    config = os.path.join(os.environ["HOME"], "serve.toml")
    with open(config, "w") as file:
        file.write('[session]\npreload = []\n[server]\nlisten = ["127.0.0.1:0"]\n')
    errors = os.path.join(os.environ["HOME"], "errors")
    with open(errors, "w") as file:
        server = subprocess.Popen([binary, "serve", f"--config={config}", "--profile=developer"], stderr=file)
    deadline = time.monotonic() + PATIENCE
    while "ready" not in open(errors).read() and server.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    listed = subprocess.run([binary, "sessions", "list"], capture_output=True, text=True)
    server.terminate()
    server.wait(PATIENCE)
    said = listed.stdout + listed.stderr
    print(json.dumps({"errors": open(errors).read(), "code": listed.returncode, "listed": said}))


main(*sys.argv[1:])
