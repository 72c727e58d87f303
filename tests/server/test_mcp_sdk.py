"""The official Python SDK, over stdio."""

from __future__ import annotations

import pathlib
import subprocess

import jar as jars


def test_the_python_sdk_holds_a_conversation(belljar, sdk_python, tmp_path):
    script = pathlib.Path(__file__).with_name("sdk_conversation.py")
    done = subprocess.run(
        [sdk_python, script, belljar, "mcp", "--audit=none", "--permission=ask"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120 * jars.SLOWER,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},  # whose Python can draw
    )  # fmt: skip
    assert done.returncode == 0 and "said goodbye" in done.stdout, done.stdout + done.stderr
