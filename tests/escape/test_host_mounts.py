"""The host's own mounts: a jar leaves them as they are, and they do not get into it.

Each test makes the mounts of a machine where / is shared, as systemd leaves it, in a mount
namespace of its own; nothing of it is seen by the machine that runs the tests.
"""

from __future__ import annotations

import os
import subprocess

import jar as jars
import pytest

POLICIES = {
    "plain": [],
    "exceptions": ["--hide=.env", "--protect=hooks"],
    "grants": ["--extra-read=sub", "--extra-write=made/new", "--cache=sub", "--tmp=hooks"],
    "whole": ["--profile=trusted-maintenance", "--hide=.env"],
    "open": ["--profile=open", "--deny-write", "--protect=hooks"],
}


# What belljar says on a host where a jar has no mounts of its own.
NO_MOUNTS = ("Landlock stops neither stat", "neither mounts of our own nor Landlock", "hide and protect need mounts")


@pytest.fixture
def on_shared_mounts(scene):
    """Runs a script as root among shared mounts; "$@" in it runs belljar as the identity."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make mounts")
    scene.secret(".env")
    scene.folder("sub")
    scene.file("hooks/pre", "good\n")

    def run(script: str, policy: list[str], *command: str) -> tuple[subprocess.CompletedProcess, bool]:
        """What came of it, and whether the jar has no mounts of its own, and belljar says so."""
        jar = jars.Jar(scene)
        command = scene.identity.command(jar.argv(command, policy, None))
        return subprocess.run(
            ["/usr/bin/unshare", "--mount", "--propagation=private", "/bin/sh", "-c",
             "mount --make-rshared / && " + script, "sh", *command],
            cwd=scene.workdir, env=jar.environment(), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=60,
        ), any(words in loss for words in NO_MOUNTS for loss in jar.losses())  # fmt: skip

    return run


@pytest.mark.parametrize("policy", POLICIES)
def test_leaves_mounts_on_a_host_that_shares_them(on_shared_mounts, policy):
    """No control: this is about what belljar itself mounts."""
    done, _ = on_shared_mounts(
        'cp /proc/self/mountinfo ../before; "$@" || exit; cp /proc/self/mountinfo ../after;'
        " cmp ../before ../after && grep -q shared: ../after && echo were shared",
        POLICIES[policy], "/bin/true",
    )  # fmt: skip
    assert done.returncode == 0 and "were shared" in done.stdout, done


@pytest.mark.parametrize("profile", jars.PROFILES)
def test_sees_what_is_mounted_on_the_host_meanwhile(on_shared_mounts, profile):
    """The control is the last line: outside it is there."""
    done, is_poor = on_shared_mounts(
        '"$@" & until [ -e ready ]; do sleep 0.05; done;'
        " mount -t tmpfs none sub && echo appeared > sub/file && touch go; wait; cat sub/file >&2",
        [f"--profile={profile}"], "/bin/sh", "-c",
        "touch ready; n=0; until [ -e go ] || [ $n -gt 200 ]; do sleep 0.05; n=$((n+1)); done;"
        " cat sub/file; echo ended",
    )  # fmt: skip
    assert "ended" in done.stdout, done
    assert is_poor or "appeared" not in done.stdout, done
    assert "appeared" in done.stderr, done


@pytest.mark.parametrize("profile", jars.PROFILES)
@pytest.mark.parametrize("hide", ["sub/.env", "sub"])
def test_reads_what_is_hidden_by_a_second_mount(on_shared_mounts, scene, profile, hide):
    """The control is the first cat: outside the file is at both paths."""
    secret = scene.secret("sub/.env")
    scene.folder("again")
    script = 'mount --bind sub again && cat again/.env >&2; "$@"'
    done, is_poor = on_shared_mounts(
        script, [f"--profile={profile}", f"--hide={hide}"], "/bin/sh", "-c",
        "cat sub/.env again/.env; echo ended",
    )  # fmt: skip
    assert secret in done.stderr, done
    assert "ended" in done.stdout, done
    assert is_poor or secret not in done.stdout, done
