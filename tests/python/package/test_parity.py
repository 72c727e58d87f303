"""The shapes of seed document 002, row by row as docs/python.md has them."""

from __future__ import annotations

import dataclasses
import inspect

import pytest

import belljar
from belljar import (
    AgentPermission,
    CodeExecutionConfig,
    CodeExecutionPermission,
    NetworkMode,
    SandboxPolicy,
    Session,
    ShellConfig,
    Skill,
)


def parameters(of) -> list:
    return list(inspect.signature(of).parameters)


def test_sandbox_policy_has_the_arguments_in_their_order():
    assert parameters(SandboxPolicy)[:10] == [
        "max_memory_mb", "max_cpu_secs", "max_procs", "max_open_fds", "max_file_sz_mb", "network",
        "extra_fs_read", "extra_fs_write", "extra_env", "strict",
    ]  # fmt: skip


def test_defaults_are_those_limits_but_for_cpu_time():
    limits = belljar.plan(SandboxPolicy()).data["limits"]
    assert limits["max_memory_mb"] == 2048 and limits["max_procs"] == 64
    assert limits["max_open_fds"] == 1024 and limits["max_file_sz_mb"] == 256
    assert limits["max_cpu_secs"] == 600


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_memory_mb", 100), ("max_cpu_secs", 7), ("max_procs", 9), ("max_open_fds", 50), ("max_file_sz_mb", 3)],
)
def test_each_limit_is_enforced_as_given(name, value):
    assert belljar.plan(SandboxPolicy(**{name: value})).data["limits"][name] == value


def test_a_cpu_limit_is_raised_to_the_timeout():
    assert belljar.plan(SandboxPolicy(max_cpu_secs=5, timeout=60)).data["limits"]["max_cpu_secs"] == 60


def test_network_modes_have_their_names():
    assert [mode.name for mode in NetworkMode] == ["NoNetwork", "Loopback", "Full"]
    for mode, name in ((NetworkMode.NoNetwork, "none"), (NetworkMode.Loopback, "loopback"), (NetworkMode.Full, "full")):
        assert belljar.plan(SandboxPolicy(network=mode)).data["network"] == name
    assert belljar.plan(SandboxPolicy()).data["network"] == "loopback"


def test_extra_paths_and_variables(work, monkeypatch):
    monkeypatch.setenv("GIVEN", "yes")
    (work / "in").mkdir()
    (work / "out").mkdir()
    (work / "in/file").write_text("read")
    (work / "job").mkdir()
    policy = SandboxPolicy(
        extra_fs_read=[str(work / "in")], extra_fs_write=[str(work / "out")], extra_env=["GIVEN"], workdir=work / "job"
    )
    out = belljar.run(["sh", "-c", f"cat {work}/in/file; echo $GIVEN > {work}/out/file; echo > {work}/in/new"], policy)
    assert out.stdout == "read" and (work / "out/file").read_text() == "yes\n"
    assert not (work / "in/new").exists()


def test_strict_is_mode_on():
    assert SandboxPolicy(strict=True).settings()["mode"] == "on"
    assert "mode" not in SandboxPolicy().settings()
    assert SandboxPolicy(strict=True, mode="full").settings()["mode"] == "full"


def test_code_execution_config_has_the_fields():
    assert parameters(CodeExecutionConfig) == [
        "python_path", "timeout_secs", "working_directory", "sandbox_policy", "permission", "approval_callback",
    ]  # fmt: skip
    config = CodeExecutionConfig()
    assert config.python_path is None and config.timeout_secs is None and config.working_directory is None
    assert config.permission is None and config.approval_callback is None


def test_shell_config_has_the_fields():
    assert parameters(ShellConfig)[:5] == [
        "shell_path", "timeout_secs", "working_directory", "sandbox_policy", "permission",
    ]  # fmt: skip


def test_without_a_policy_there_is_a_sandbox():
    assert CodeExecutionConfig().sandbox_policy == SandboxPolicy() == ShellConfig().sandbox_policy
    with Session(code_execution_config=CodeExecutionConfig(), shell_config=ShellConfig()) as s:
        assert s.policy.profile == "restricted"


def test_permissions_have_their_names():
    assert [one.name for one in AgentPermission] == ["Auto", "Ask", "Deny"]
    assert CodeExecutionPermission is AgentPermission


def test_skill_has_the_fields():
    assert parameters(Skill) == ["name", "description", "source_path"]


def test_a_session_takes_what_a_runner_did():
    assert {
        "code_execution_config", "shell_config", "skills", "agent_permission", "agent_approval_callback",
    } <= set(parameters(belljar._session.Base))  # fmt: skip


def test_a_result_has_the_fields_of_the_tool():
    names = {field.name for field in dataclasses.fields(belljar.PythonResult)}
    assert names >= {
        "status", "stdout", "stderr", "exception", "result", "images", "video_frames", "files",
        "execution_time_ms", "working_directory", "interrupted", "killed",
    }  # fmt: skip
    assert {field.name for field in dataclasses.fields(belljar.ShellResult)} >= {"commands", "exit_code"}
