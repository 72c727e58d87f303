"""doctor: what it says as data, and that it leaves nothing behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import jar as jars
import pytest


@pytest.mark.parametrize("profile", ["developer", "open"])
@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_a_verification_is_json_when_asked_and_leaves_nothing(scene, profile):
    before = set(os.listdir("/tmp"))
    done = subprocess.run(
        scene.identity.command([jars.binary(), "doctor", "--verify", profile, "--json"]), cwd=scene.workdir,
        env=jars.Outside(scene).environment(), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    said = json.loads(done.stdout)
    assert said["schema_version"] == 1 and said["profile"] == profile
    held = {check["claim"]: check["held"] for check in said["checks"]}
    assert held["/tmp is writable inside"]
    assert said["holds"] == all(held.values()) == (profile == "developer"), done.stdout
    assert done.returncode == (0 if said["holds"] else 1)
    assert [name for name in set(os.listdir("/tmp")) - before if "verify" in name] == []


@pytest.mark.parametrize("identity", ["root"], indirect=True)
def test_a_chroot_is_said_to_be_why_there_are_no_user_namespaces(identity, tmp_path):
    shutil.copy(jars.binary(), tmp_path / "belljar")
    said = subprocess.run(["chroot", tmp_path, "/belljar", "doctor"], capture_output=True, text=True, timeout=120).stdout
    assert "NO   user namespaces" in said, said
    assert "This seems to be a chroot" in said, said
    outside = subprocess.run([jars.binary(), "doctor"], capture_output=True, text=True, timeout=120).stdout
    assert "chroot" not in outside, outside
