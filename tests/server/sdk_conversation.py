"""A conversation of the official Python SDK's client with belljar; run by the SDK's own interpreter.

    sdk_conversation.py ERA http://ADDRESS/mcp     the token is in BELLJAR_TOKEN
    sdk_conversation.py ERA PROGRAM [FLAGS]        over stdio

ERA is what the SDK calls its mode: `legacy` begins with initialize, `2026-07-28` does not, and `auto` finds out.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters, types
from mcp.client.streamable_http import streamable_http_client

ERA, TARGET, *FLAGS = sys.argv[1:]
DRAWING = """import matplotlib.pyplot as p
p.plot([1, 3, 2])
p.show()
open('notes.txt', 'w').write('alpha\\nbeta\\n')"""
LOOP = "print('begun', flush=True)\nwhile True: pass"
asked: list[str] = []


async def approve(context, params):
    asked.append(params.message)
    no = "rm -rf" in params.message
    return types.ElicitResult(action="accept", content={"decision": "deny" if no else "tool"})


def server():
    if not TARGET.startswith("http"):
        return StdioServerParameters(command=TARGET, args=FLAGS)
    headers = {"Authorization": f"Bearer {os.environ['BELLJAR_TOKEN']}"}
    return streamable_http_client(TARGET, http_client=httpx2.AsyncClient(headers=headers, timeout=120))


async def cancel_a_loop(client: Client, more: dict) -> None:
    began = asyncio.Event()

    async def heard(done, total, message):
        if message and "begun" in message:
            began.set()

    loop = asyncio.create_task(client.call_tool("python", {"code": LOOP, **more}, progress_callback=heard))
    await asyncio.wait_for(began.wait(), 60)
    loop.cancel()
    # Its time is 60 s, and calls wait for one another.
    again = await asyncio.wait_for(client.call_tool("python", {"code": "6 * 7", **more}), 50)
    assert again.structured_content["result"] == "42", again


async def converse(client: Client) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert {"python", "shell", "read", "write", "edit", "glob", "grep"} <= set(tools), tools
    assert "sandbox" in tools["python"].description

    drawn = await client.call_tool("python", {"code": DRAWING})
    assert not drawn.is_error, drawn
    assert asked and "matplotlib" in asked[0], "a person was asked"
    image = next(part for part in drawn.content if part.type == "image")
    assert base64.b64decode(image.data).startswith(b"\x89PNG")
    link = next(part for part in drawn.content if part.type == "resource_link")
    # Where no connection is kept, the session that came back is named from now on.
    more = {} if client.protocol_version < "2026" else {"session": drawn.structured_content["session"]}

    await client.call_tool("write", {"path": "more.txt", "content": "gamma\n", **more})
    await client.call_tool("edit", {"path": "notes.txt", "old_string": "beta", "new_string": "delta", **more})
    found = await client.call_tool("grep", {"pattern": "delta|gamma", **more})
    assert {one["text"] for one in found.structured_content["matches"]} == {"delta", "gamma"}, found
    text = (await client.read_resource(link.uri)).contents[0].text
    assert text == "alpha\ndelta\n", text

    questions = len(asked)
    refused = await client.call_tool("shell", {"commands": ["rm -rf ."], **more})
    assert refused.is_error and refused.structured_content["error_type"] == "not_approved", refused
    assert len(asked) == questions + 1
    text = (await client.read_resource(link.uri, cache_mode="bypass")).contents[0].text
    assert text == "alpha\ndelta\n", "what was refused did not run"

    await cancel_a_loop(client, more)
    assert len(asked) == questions + 1, "python was approved for the whole session"
    prompts = (await client.list_prompts()).prompts
    assert (await client.get_prompt(prompts[-1].name)).messages
    print(client.protocol_version, "said goodbye")


async def main() -> None:
    async with Client(server(), mode=ERA, elicitation_callback=approve) as client:
        await converse(client)


asyncio.run(main())
