from __future__ import annotations

import asyncio

import pytest

import belljar
from belljar import AgentPermission, AsyncSession, CodeExecutionConfig, Decision, Session, ShellConfig


def test_the_callback_gets_what_the_servers_event_has():
    seen = []

    def callback(approval):
        seen.append(approval)
        return True

    with Session(agent_permission=AgentPermission.Ask, agent_approval_callback=callback) as s:
        assert s.python("6 * 7").result == "42"
        assert s.shell("echo hi").stdout == "hi\n"
        session = s.id
    first, second = seen
    assert set(first) == {"approval_id", "session_id", "round", "tool", "arguments", "asked_at", "expires_at"}
    assert first["session_id"] == session and (first["round"], second["round"]) == (1, 2)
    assert first["tool"]["source"] == "belljar" and first["tool"]["kind"] == "python" and first["tool"]["label"]
    assert first["arguments"] == {"code": "6 * 7"} and second["arguments"] == {"commands": ["echo hi"]}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda _: False, "not approve"),
        (lambda _: Decision(False, "try it without rm"), "try it without rm"),
        (lambda _: None, "no decision"),
        (lambda _: 1, "no decision"),
        (lambda _: 1 / 0, "callback failed"),
    ],
    ids=["False", "Decision", "None", "1", "exception"],
)
def test_all_but_a_yes_is_a_no(answer, words, work):
    config = ShellConfig(permission=AgentPermission.Ask, approval_callback=answer, working_directory=str(work))
    with Session(shell_config=config) as s:
        with pytest.raises(belljar.Denied, match=words):
            s.shell("touch ran")
        assert s.python("'python was not asked about'").ok
    assert not (work / "ran").exists()


def test_nobody_to_ask_is_a_no():
    with Session(code_execution_config=CodeExecutionConfig(permission=AgentPermission.Ask)) as s:
        with pytest.raises(belljar.Denied, match="nobody"):
            s.python("1")


def test_deny_asks_nobody():
    asked = []
    config = CodeExecutionConfig(permission=AgentPermission.Deny, approval_callback=lambda a: asked.append(a) or True)
    with Session(code_execution_config=config) as s:
        with pytest.raises(belljar.Denied):
            s.python("1")
        assert s.shell("true").ok
    assert asked == []


def test_the_strictest_counts():
    config = CodeExecutionConfig(permission=AgentPermission.Auto)
    with Session(code_execution_config=config, agent_permission=AgentPermission.Deny) as s:
        with pytest.raises(belljar.Denied):
            s.python("1")
    config = CodeExecutionConfig(permission=AgentPermission.Deny)
    with Session(code_execution_config=config, agent_permission=AgentPermission.Auto) as s:
        with pytest.raises(belljar.Denied):
            s.python("1")


def test_a_decision_can_be_remembered():
    asked = []

    def callback(approval):
        asked.append(approval["tool"]["kind"])
        return Decision(True, remember_for_session=True)

    with Session(agent_permission=AgentPermission.Ask, agent_approval_callback=callback) as s:
        for _ in range(3):
            assert s.python("1").ok
        assert s.shell("true").ok
    assert asked == ["python", "shell"]


def test_tools_ask_too():
    with Session(agent_permission=AgentPermission.Ask, agent_approval_callback=lambda a: a["tool"]["kind"] == "read") as s:
        tools = belljar.tools(s)
        assert tools["write"](path="x", content="y").error_type == "not_approved"
        assert tools["read"](path="x").error_type == "not_found"
        assert tools["process_start"](arguments=["true"]).error_type == "not_approved"


def test_the_shells_permission_is_that_of_processes_too():
    with Session(shell_config=ShellConfig(permission=AgentPermission.Deny)) as s:
        assert belljar.tools(s)["process_start"](arguments=["true"]).error_type == "denied"


def test_a_callback_may_use_another_session():
    with Session() as other:

        def callback(approval):
            return other.python(f"{approval['arguments']['code']!r} == '1'").result == "True"

        with Session(agent_permission=AgentPermission.Ask, agent_approval_callback=callback) as s:
            assert s.python("1").result == "1"
            with pytest.raises(belljar.Denied):
                s.python("2")


def test_patience_ends(work):
    """A callback that thinks for too long: the call is denied meanwhile, and its answer counts nothing."""
    import time

    config = {"agent_permission": AgentPermission.Ask, "approval_patience": 0.2, "workdir": work}
    with Session(agent_approval_callback=lambda _: time.sleep(1) or True, **config) as s:
        with pytest.raises(belljar.Denied):
            s.shell("touch ran")
    assert not (work / "ran").exists()


def test_async_callbacks_may_be_coroutines():
    async def callback(approval):
        await asyncio.sleep(0)
        return approval["arguments"].get("code") == "1"

    def broken(approval):
        raise RuntimeError("no")

    async def main():
        async with AsyncSession(agent_permission=AgentPermission.Ask, agent_approval_callback=callback) as s:
            assert (await s.python("1")).result == "1"
            with pytest.raises(belljar.Denied):
                await s.python("2")
        async with AsyncSession(agent_permission=AgentPermission.Ask, agent_approval_callback=broken) as s:
            with pytest.raises(belljar.Denied, match="callback failed"):
                await s.python("1")

    asyncio.run(main())
