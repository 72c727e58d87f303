"""A program as people write it, for type checkers. It is never run."""

import asyncio
from typing import Any, Dict, List

import belljar
from belljar import (
    AgentPermission,
    AsyncSession,
    CodeExecutionConfig,
    Decision,
    NetworkMode,
    SandboxPolicy,
    Session,
    ShellConfig,
    Skill,
)


def approve(approval: Dict[str, Any]) -> bool:
    return bool(approval["tool"]["kind"] == "python")


async def think(approval: Dict[str, Any]) -> Decision:
    await asyncio.sleep(0)
    return Decision(False, "not today", remember_for_session=True)


def main() -> int:
    out = belljar.run(["python3", "script.py"], SandboxPolicy(network=NetworkMode.NoNetwork), timeout=30)
    code: int = out.exit_code
    text: str = out.stdout
    layers: Dict[str, List[str]] = out.enforced
    lost: List[belljar.Loss] = out.degraded
    print(code, text, layers, lost, out.reason is belljar.Reason.Timeout)

    policy = SandboxPolicy(max_memory_mb=512, max_procs="unlimited", extra_fs_read=["data"], strict=True)
    plan: belljar.Plan = belljar.plan(policy, why=["/etc/passwd"])
    print(plan.starts, plan.why["/etc/passwd"], belljar.doctor()["profiles"])

    with Session(
        profile="restricted",
        extra_fs_read=["data"],
        code_execution_config=CodeExecutionConfig(permission=AgentPermission.Ask, approval_callback=approve),
        shell_config=ShellConfig(timeout_secs=30),
        skills=[Skill("greet", "greets", "skills/greet")],
        agent_approval_callback=think,
    ) as s:
        r: belljar.PythonResult = s.python("1 + 1", timeout=5)
        value = r.result
        if value is not None:
            print(value.upper())
        r.images[0].save("plot.png")
        for chunk in s.shell_stream("make -j2"):
            print(chunk.text, end="")
        stream = s.python_stream("1")
        result: belljar.PythonResult = stream.result
        answer = belljar.tools(s)["python"](code="1")
        print(result.files, str(answer))
    try:
        belljar.run(["true"], check=True)
    except belljar.SandboxUnavailable as error:
        print(error.hint, error.promises)
    except belljar.Error as error:
        print(error.what)
    return 0


async def also() -> str:
    outcome = await belljar.run_async(["true"], timeout=3)
    async with AsyncSession(policy=SandboxPolicy()) as s:
        results = await asyncio.gather(s.python("1"), s.shell(["true"]))
        async for chunk in s.shell_stream("ls"):
            print(chunk.stream)
        return f"{outcome.ok} {results[0].result} {results[1].commands}"


if __name__ == "__main__":
    raise SystemExit(main())
