"""The official conformance suite, against the endpoint with its fixtures."""

from __future__ import annotations

import os
import re
import subprocess

import jar as jars
import pytest


@pytest.fixture
def endpoint(belljar, tmp_path):
    driver = os.path.join(os.path.dirname(belljar), "mcp_driver")
    with open(tmp_path / "errors", "w") as errors:
        process = subprocess.Popen([driver], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=tmp_path)
        port = int(process.stdout.readline())
        yield f"http://127.0.0.1:{port}/mcp"
        process.stdin.close()
        assert process.wait(30 * jars.SLOWER) == 0
        process.stdout.close()


@pytest.mark.parametrize("revision, scenarios", [("2025-11-25", 30), ("2026-07-28", 37)])
def test_the_conformance_suite_passes(endpoint, node_modules, tmp_path, revision, scenarios):
    node = node_modules / "node/bin/node"
    suite = node_modules / "@modelcontextprotocol/conformance/dist/index.js"
    done = subprocess.run(
        [node, suite, "server", "--url", endpoint, "--requirements", revision],
        cwd=tmp_path, capture_output=True, text=True, timeout=300 * jars.SLOWER,
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-6000:]
    assert len(re.findall(r"✓", said)) >= scenarios, said[-6000:]
