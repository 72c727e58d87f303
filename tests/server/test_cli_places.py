"""Servers are found by the person whose they are, whatever surroundings they were started in."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

import jar as jars
import pytest

MEETING = pathlib.Path(__file__).parent / "meeting.py"
STRANGER = pathlib.Path(__file__).parent / "stranger.py"
OWN_MOUNTS = ["/usr/bin/unshare", "--mount"]
if os.geteuid() != 0:
    OWN_MOUNTS = ["/usr/bin/unshare", "--user", "--map-current-user", "--keep-caps", "--mount"]


@pytest.mark.parametrize("login", [True, False], ids=["login", "no login"])
def test_a_server_without_the_variable_is_found_by_who_has_it(scene, login):
    """The SDKs pass HOME, PATH and a few more on to a server, and not where a person's sockets are."""
    if subprocess.run([*OWN_MOUNTS, "true"], capture_output=True).returncode != 0:
        pytest.skip("needs mounts of its own")
    uid, gid = scene.identity.uid, scene.identity.gid
    runtime = f"/run/user/{uid}" if login else str(scene.home)
    done = subprocess.run(
        [*OWN_MOUNTS, "/usr/bin/python3", MEETING, runtime if login else "-", str(uid), str(gid), jars.binary(),
         f"XDG_RUNTIME_DIR={runtime}"],
        cwd=scene.home, env=jars.Outside(scene).environment(), capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done
    told = json.loads(done.stdout)
    assert told["found"] == 1, done
    assert "hi" in told["answer"]["result"]["content"][0]["text"], told


@pytest.mark.parametrize("kind", ["nothing", "folder", "file", "link"])
def test_a_folder_that_a_stranger_made_is_passed_over(scene, kind):
    """Everybody may make one in /tmp. `nothing` is the control."""
    if os.geteuid() != 0:
        pytest.skip("needs root to be somebody else")
    environment = {**jars.Outside(scene).environment(), "HOME": str(scene.home)}
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        environment.pop(name, None)
    done = subprocess.run(
        [*OWN_MOUNTS, "/usr/bin/python3", STRANGER, str(scene.identity.uid), str(scene.identity.gid), kind,
         jars.binary()],
        cwd=scene.home, env=environment, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done
    told = json.loads(done.stdout)
    assert "belljar: ready" in told["errors"], told
    assert told["code"] == 0 and told["listed"] == "There are no sessions.\n", told
    assert ("belongs to somebody else" in told["errors"]) == (kind != "nothing"), told
