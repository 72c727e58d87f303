"""The official SDKs, each in its own environment, hold one conversation: list tools, run Python with a plot and get
the image, edit a file, grep it, approve and refuse by elicitation, cancel a running loop, read a resource. With
`belljar mcp` over stdio and with /mcp of `belljar serve` over HTTP, in both eras of the protocol."""

from __future__ import annotations

import pathlib
import subprocess

import jar as jars
import pytest
import serving

HERE = pathlib.Path(__file__).parent
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}  # whose Python can draw


@pytest.fixture(params=["stdio", "http"])
def target(request, scene):
    """The words that lead to a server, and what must be in the environment."""
    if request.param == "stdio":
        # The SDKs do not pass it on, and `belljar approvals` of other tests must not find what waits here.
        place = f"XDG_RUNTIME_DIR={scene.home}"
        server = ["/usr/bin/env", place, jars.binary(), "mcp", "--audit=none", "--permission=ask"]
        yield [*scene.identity.command(server)], {}
        return
    with serving.Server(scene, "--permission=ask") as server:
        yield [f"http://127.0.0.1:{server.port}/mcp"], {"BELLJAR_TOKEN": serving.TOKENS["ann"][1]}


def converse(command: list, target, scene, version: str) -> None:
    words, more = target
    done = subprocess.run(
        [*command, *words], cwd=scene.workdir, capture_output=True, text=True, timeout=180 * jars.SLOWER,
        env={**ENVIRONMENT, "HOME": str(scene.home), **more},
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout == f"{version} said goodbye\n", done.stdout + done.stderr


@pytest.mark.parametrize("mode, version", [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
def test_the_python_sdk_holds_a_conversation(target, scene, sdk_python, mode, version):
    converse([sdk_python, HERE / "sdk_conversation.py", mode], target, scene, version)


@pytest.mark.parametrize("package, version", [("sdk", "2025-11-25"), ("client", "2026-07-28")])
def test_the_typescript_sdk_holds_a_conversation(target, scene, node_modules, package, version):
    node = node_modules / "node/bin/node"
    folder = node_modules / "@modelcontextprotocol" / package
    converse([node, HERE / "sdk_conversation.mjs", folder], target, scene, version)
