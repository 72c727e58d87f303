from __future__ import annotations

import asyncio
import time

import pytest

import belljar
from belljar import AsyncSession
from conftest import PATIENCE, descriptors


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, PATIENCE))


def test_all_of_it(work):
    async def main():
        async with AsyncSession() as s:
            assert (await s.python("x = 6 * 7; x")).result == "42"
            assert (await s.shell(["cd /tmp", "pwd"])).stdout == "/tmp\n"
            await s.write_file("in.txt", "one")
            assert await s.read_file("in.txt") == b"one"
            assert [entry["name"] for entry in await s.list_files()] == ["in.txt"]
            assert (await s.describe())["plan"]["profile"] == "restricted"
            assert (await s.tool("read", {"path": "in.txt"}))["is_error"] is False
            await s.reset()
            assert (await s.python("x")).exception.type == "NameError"
            with pytest.raises(belljar.ToolError):
                await s.read_file("nothing")
        assert s.closed
        with pytest.raises(belljar.SessionClosed):
            await s.python("1")

    run(main())


def test_calls_run_beside_one_another():
    async def main():
        async with AsyncSession() as s:
            python = s.python("import os, time\nopen('a', 'w').close()\nwhile not os.path.exists('b'): time.sleep(0.02)")
            shell = s.shell("touch b; until test -e a; do sleep 0.02; done; echo met")
            results = await asyncio.gather(python, shell)
            assert results[0].ok and results[1].stdout == "met\n"

    run(main())


def test_the_loop_runs_on_meanwhile():
    async def main():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        async with AsyncSession() as s:
            ticker = asyncio.ensure_future(tick())
            await s.python("import time; time.sleep(1)")
            ticker.cancel()
        assert ticks > 5

    run(main())


def test_streams():
    async def main():
        async with AsyncSession() as s:
            stream = s.shell_stream("echo one; echo two >&2")
            texts = {chunk.stream: chunk.text async for chunk in stream}
            assert texts == {"stdout": "one\n", "stderr": "two\n"}
            assert (await stream.result()).exit_code == 0
            async with s.python_stream("import time\nprint('begun', flush=True)\ntime.sleep(600)") as stream:
                async for chunk in stream:
                    assert chunk.text == "begun\n"
                    break
            assert (await s.python("1 + 1")).result == "2"

    run(main())


def test_a_cancelled_task_interrupts_the_guest():
    async def main():
        async with AsyncSession() as s:
            await s.python("x = 1")
            code = "import time\ntry:\n  open('begun', 'w').close(); time.sleep(600)\nexcept KeyboardInterrupt:\n  x = 2"
            task = asyncio.ensure_future(s.python(code))
            while (await s.shell("test -e begun")).exit_code != 0:
                pass
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await s.python("x")).result == "2"

    began = time.monotonic()
    run(main())
    assert time.monotonic() - began < PATIENCE


def test_a_timeout_of_asyncio_is_one_too():
    async def main():
        async with AsyncSession() as s:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(s.shell("sleep 600"), 0.5)
            assert (await s.shell("echo on")).stdout == "on\n"

    run(main())


def test_a_call_that_waits_its_turn_can_be_cancelled_alone():
    async def main():
        async with AsyncSession() as s:
            code = "import os, time\nopen('begun', 'w').close()\nwhile not os.path.exists('go'): time.sleep(0.02)\n'whole'"
            first = asyncio.ensure_future(s.python(code))
            while (await s.shell("test -e begun")).exit_code != 0:
                pass
            second = asyncio.ensure_future(s.python("2"))
            await asyncio.sleep(0.1)
            second.cancel()
            with pytest.raises(asyncio.CancelledError):
                await second
            await s.shell("touch go")
            assert (await first).result == "'whole'"

    run(main())


def test_many_sessions_at_once_leave_no_descriptor():
    async def one(i):
        async with AsyncSession() as s:
            return (await s.python(f"{i} * 2")).result

    async def main():
        return await asyncio.gather(*(one(i) for i in range(6)))

    run(main())
    before = descriptors()
    assert run(main()) == [str(i * 2) for i in range(6)]
    end = time.monotonic() + PATIENCE
    while descriptors() > before + 8 and time.monotonic() < end:
        time.sleep(0.05)
    assert descriptors() <= before + 8
