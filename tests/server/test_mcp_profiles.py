"""`belljar mcp` under every profile: the first call works, in a folder of its own or in one that is given."""

from __future__ import annotations

import os
import pathlib

import mcp_client
import pytest

PROFILES = ["open", "developer", "restricted", "public-bot", "trusted-maintenance"]


@pytest.mark.parametrize("profile", PROFILES)
def test_sessions_work_with_and_without_a_workspace(scene, profile):
    given = scene.workdir
    for flags in ([], [f"--workspace={given}"]):
        with mcp_client.Client(scene, f"--profile={profile}", *flags) as client:
            # By its whole path too, since a guest may stand where it cannot come.
            said = client.tool("shell", commands=['echo hello > x && cat "$PWD/x" && ls "$PWD"'])
            assert not said["isError"] and "hello" in said["content"][0]["text"], said
            python = client.tool("python", code="import os; open(os.getcwd() + '/y', 'w').write('1'); open('x').read()")
            assert python["structuredContent"]["result"] == "'hello\\n'", python
            assert "hello" in client.text("read", path="x")
    made = pathlib.Path(given, "x")
    assert made.read_text() == "hello\n" and made.stat().st_uid == scene.identity.uid


def test_others_cannot_look_into_a_fresh_folder(scene):
    """Also under `open`, whose guests come to it by its path in the host's /tmp."""
    with mcp_client.Client(scene, "--profile=open") as client:
        folder = pathlib.Path(client.text("shell", commands=["pwd"]).strip())
        assert folder.is_dir(), "it is there for who may see it"
        assert folder.stat().st_mode & 0o077 == 0
        for above in (folder.parent, folder.parent.parent):
            assert above.stat().st_mode & 0o066 == 0, above
            assert above.stat().st_mode & 0o077 == 0 or scene.identity.uid == 0, above
        assert os.path.dirname(above) == "/tmp"
