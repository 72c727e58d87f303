"""What tools say of the places in a session is what the session does."""

from __future__ import annotations

import mcp_client


def description(client, name: str) -> str:
    tools = client.call("tools/list")["result"]["tools"]
    return next(tool["description"] for tool in tools if tool["name"] == name)


def test_the_home_is_said_to_be_writable_and_is(scene):
    with mcp_client.Client(scene, f"--workspace={scene.workdir}", "--profile=restricted") as client:
        places = f"Files can be written in {scene.workdir}, {scene.home} (the home)"
        assert places + ", /tmp and nowhere else." in description(client, "shell")
        assert places + " and nowhere else." in description(client, "write")
        assert client.text("shell", commands=["echo hi > ~/x; cat ~/x"]) == "hi\n"
        assert not client.tool("write", path="~/y", content="1").get("isError")
        # The same when the session is there, and has a folder for it.
        assert places + ", /tmp and nowhere else." in description(client, "shell")
        assert not (scene.home / "x").exists() and not (scene.home / "y").exists(), "it is not the person's"


def test_under_public_bot_the_home_is_the_one_inside(scene):
    with mcp_client.Client(scene, f"--workspace={scene.workdir}", "--profile=public-bot") as client:
        assert "written in /workspace, /home/sandbox (the home), /tmp and nowhere else." in description(client, "shell")


def test_a_refusal_tells_which_places_are_read_only(scene):
    with mcp_client.Client(scene, f"--workspace={scene.workdir}", "--profile=restricted") as client:
        refused = client.tool("read", path=str(scene.outside / "x"))
        text = refused["content"][0]["text"]
        assert refused["isError"] and "use a path in " in text, text
        writable, readable = text.split("use a path in ")[1].split("; read-only: ")
        assert set(writable.split(", ")) == {str(scene.workdir), str(scene.home)}, text
        assert readable.startswith("/usr, /etc, "), text
