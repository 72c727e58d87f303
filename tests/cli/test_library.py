"""The library's own tests as an ordinary user, whose launch goes another way than root's;
ctest runs them as whoever runs it."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import jar as jars
import pytest


@pytest.mark.parametrize("identity", ["user"], indirect=True)
@pytest.mark.parametrize(
    ("program", "tests"), [("unit_tests", "Api.*:HostProgram.*:Init.*:Warmed.*"), ("no_malloc_test", "*")]
)
def test_library(scene, program, tests):
    built = pathlib.Path(jars.binary()).parent / program
    if not built.exists():
        pytest.skip(f"{program} is not built beside {jars.binary()}")
    here = scene.base / program
    shutil.copy2(built, here)
    os.chmod(here, 0o755)
    done = subprocess.run(
        scene.identity.command([os.fspath(here), "--gtest_brief=1", f"--gtest_filter={tests}"]),
        cwd=scene.workdir, env={"PATH": jars.SYSTEM_PATH, "HOME": os.fspath(scene.home)},
        capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[  PASSED  ]" in done.stdout
