"""A conversation of the official Python SDK's client with `belljar mcp`; run by its own interpreter.

    sdk_conversation.py SERVER [FLAGS]
"""

from __future__ import annotations

import asyncio
import base64
import sys

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client


async def approve(context, params):
    asked.append(params.message)
    return types.ElicitResult(action="accept", content={"decision": "tool"})


asked: list[str] = []


async def converse() -> None:
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write, elicitation_callback=approve) as session:
            await session.initialize()
            tools = {tool.name: tool for tool in (await session.list_tools()).tools}
            assert {"python", "shell", "read", "write", "edit", "glob", "grep"} <= set(tools), tools
            assert "sandbox" in tools["python"].description

            code = "import matplotlib.pyplot as p\np.plot([1, 3, 2])\np.show()\nopen('notes.txt', 'w').write('alpha\\nbeta\\n')"
            drawn = await session.call_tool("python", {"code": code})
            assert not drawn.is_error, drawn
            assert asked and "matplotlib" in asked[0], "a person was asked"
            image = next(part for part in drawn.content if part.type == "image")
            assert base64.b64decode(image.data).startswith(b"\x89PNG")
            link = next(part for part in drawn.content if part.type == "resource_link")

            await session.call_tool("write", {"path": "more.txt", "content": "gamma\n"})
            await session.call_tool("edit", {"path": "notes.txt", "old_string": "beta", "new_string": "delta"})
            found = await session.call_tool("grep", {"pattern": "delta|gamma"})
            assert {one["text"] for one in found.structured_content["matches"]} == {"delta", "gamma"}, found

            text = (await session.read_resource(link.uri)).contents[0].text
            assert text == "alpha\ndelta\n", text

            began = asyncio.Event()

            async def heard(done, total, message):
                if message and "begun" in message:
                    began.set()

            loop = asyncio.create_task(
                session.call_tool("python", {"code": "print('begun', flush=True)\nwhile True: pass"}, progress_callback=heard)
            )
            await asyncio.wait_for(began.wait(), 30)
            loop.cancel()
            again = await asyncio.wait_for(session.call_tool("python", {"code": "6 * 7"}), 30)
            assert again.structured_content["result"] == "42", again
            prompts = (await session.list_prompts()).prompts
            assert await session.get_prompt(prompts[-1].name)
    print("said goodbye")


asyncio.run(converse())
