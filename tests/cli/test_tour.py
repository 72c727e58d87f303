"""The tour that ./run shows: all of it holds, and it would notice if it did not."""

from __future__ import annotations

import os
import pathlib
import pty
import shutil
import subprocess

import pytest

import jar as jars

TOUR = pathlib.Path(__file__).parents[2] / "examples/tour"
ATTEMPTS = 16
PATIENCE = 120  # it takes 4 seconds on an idle machine


@pytest.fixture
def tour(scene):
    """The tour and the program where the identity can reach them."""
    place = scene.base / "tour"
    shutil.copytree(TOUR, place)
    shutil.copy2(jars.binary(), place / "belljar")
    for path in (place, *place.iterdir()):
        os.chmod(path, 0o755)

    def run(program="belljar", **how):
        environment = {"PATH": jars.SYSTEM_PATH, "HOME": os.fspath(scene.home), "TERM": "xterm"}
        environment |= how.pop("env", {})
        how = {"capture_output": True, "text": True} | how
        return subprocess.run(
            scene.identity.command([os.fspath(place / "tour.sh"), os.fspath(place / program)]),
            cwd=scene.workdir, env=environment, stdin=subprocess.DEVNULL, timeout=PATIENCE, **how,
        )  # fmt: skip

    run.place = place
    return run


def lines(text, word):
    return [line for line in text.splitlines() if line.split()[:1] == [word]]


def test_everything_holds(tour):
    shown = tour()
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert len(lines(shown.stdout, "works")) == 4, shown.stdout
    assert len(lines(shown.stdout, "stopped")) == ATTEMPTS, shown.stdout
    assert len(lines(shown.stdout, "true")) == 6, shown.stdout
    assert not lines(shown.stdout, "FAILED")
    assert "by ?" not in shown.stdout
    assert shown.stderr == ""
    assert "\x1b" not in shown.stdout


NO_SANDBOX = """#!/bin/sh
# Takes belljar's place: the command runs as it is, but not for ever.
if [ "$1" = explain ]; then echo '{"promises": []}'; exit; fi
while [ "$1" != -- ]; do
  if [ "$1" = -C ]; then cd "$2"; shift; fi
  shift
done
shift
exec timeout -s KILL 6 "$@"
"""


@pytest.mark.parametrize("identity", ["user"], indirect=True)  # as root it would really mount
def test_without_a_sandbox_it_fails(tour, scene):
    wrapper = tour.place / "none"
    wrapper.write_text(NO_SANDBOX)
    wrapper.chmod(0o755)
    shown = tour("none")
    assert shown.returncode == 1, shown.stdout
    failed = "\n".join(lines(shown.stdout, "FAILED"))
    for attempt in ("ssh key", "beside the project", "folder of photos", "API token", "127.0.0.1", "kill a process",
                    "trace a process", "set-uid", "processes without end", "memory", "run for ever"):  # fmt: skip
        assert attempt in failed, f"{attempt}\n{shown.stdout}"


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
@pytest.mark.parametrize("identity", ["user"], indirect=True)
def test_colours_are_for_terminals(tour, no_color, coloured):
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    try:
        # Of a tour that fails at once only the first lines are needed.
        shown = tour("missing", env={"NO_COLOR": no_color}, capture_output=False, stdout=theirs, stderr=theirs)
        assert shown.returncode == 1
        assert (b"\x1b[" in os.read(ours, 65536)) == coloured
    finally:
        os.close(ours)
        os.close(theirs)
